/* Any bytes as a certificate: what is let through to CZMQ it can read, since it
 * would say on stdout what it cannot; and what was read is written and read
 * again as the same. */
#include "certificate.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct certificate certificate, again;
    char text[CERTIFICATE_MAX], text_again[CERTIFICATE_MAX];
    if (certificate_read((const char *)data, size, &certificate) != LS_OK) {
        must(strcmp(ls_error_text(), "CZMQ cannot read it") != 0);
        return 0;
    }
    const size_t n = certificate_write(&certificate, NULL, text);
    must(n < sizeof text);
    must(certificate_read(text, n, &again) == LS_OK);
    must(certificate_write(&again, NULL, text_again) == n);
    must(memcmp(text, text_again, n) == 0);
    return 0;
}

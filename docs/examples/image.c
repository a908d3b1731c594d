/* Images that are drawn where their readers look at them: none is copied. */
#include <stdio.h>

#include <lockstep/lockstep.h>

enum { BYTES = 1920 * 1080 * 3, IMAGES = 100, WAIT_MS = 10000 };

static int look(void *seen, const struct ls_event *image)
{
    const unsigned char *pixel = image->data;
    *(int *)seen += pixel[image->size - 1];
    return LS_OK;
}

static void draw(unsigned char *pixel, int n)
{
    for (size_t i = 0; i < BYTES; i++)
        pixel[i] = (unsigned char)n;
}

/* Whatever becomes of the emit: the image is its own from then on. */
static int send(ls_node *node, int n)
{
    void *image;
    int status = ls_payload_alloc(&image, node, BYTES);
    if (status != LS_OK)
        return status;
    draw(image, n);
    return ls_emit_with(node, &(struct ls_emission){.event = "image",
                                                    .data = image,
                                                    .size = BYTES,
                                                    .release = ls_payload_free,
                                                    .timeout_ms = WAIT_MS});
}

int main(void)
{
    struct ls_node_options options;
    ls_node *camera = NULL, *viewer = NULL;
    int sum = 0;
    ls_node_options_init(&options);
    int status = ls_node_create(&viewer, &options);
    if (status == LS_OK && (status = ls_on(viewer, "image", look, &sum)) == 0)
        status = ls_node_start(viewer);
    const char *attach = status == LS_OK ? ls_node_endpoint(viewer) : "";
    options.id = 1;
    options.n_attach = 1;
    options.attach = &attach;
    options.world_size = 2;
    if (status == LS_OK && (status = ls_node_create(&camera, &options)) == 0)
        status = ls_node_start(camera);
    for (int n = 0; n < IMAGES && status == LS_OK; n++)
        status = send(camera, n);
    if (status != LS_OK)
        fprintf(stderr, "image: %s\n", ls_error_text());
    ls_node_destroy(&camera); /* what it emitted is heard */
    ls_node_destroy(&viewer);
    printf("the viewer has seen %d\n", sum);
    return ls_status_exit_code(status);
}

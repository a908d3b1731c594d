/* What device.h promises, on any device. */
#include "device_promises.h"

#include "base/huge_allocations.h"

enum { BYTES = 4096 };

ls_device *open_device(const char *name)
{
    ls_device *device = NULL;
    if (ls_device_open(&device, ls_runtime_threads(), name) != LS_OK)
        fail_msg("%s", ls_error_text());
    return device;
}

ls_device_stack *new_stack(ls_device *device, size_t capacity)
{
    ls_device_stack *stack = NULL;
    if (ls_device_stack_create(&stack, device, capacity) != LS_OK)
        fail_msg("%s", ls_error_text());
    return stack;
}

void upload(ls_device_stack *stack, size_t offset, size_t size)
{
    assert_int_equal(ls_device_stack_upload(stack, offset, size), LS_OK);
}

void download(ls_device_stack *stack, size_t offset, size_t size)
{
    assert_int_equal(ls_device_stack_download(stack, offset, size), LS_OK);
}

void wait_for(ls_device_stack *stack)
{
    if (ls_device_stack_wait(stack, LS_FOREVER) != LS_OK)
        fail_msg("%s", ls_error_text());
}

void assert_said(const char *word, ...)
{
    va_list words;
    va_start(words, word);
    for (; word != NULL; word = va_arg(words, const char *))
        if (strstr(ls_error_text(), word) == NULL)
            fail_msg("expected \"%s\" in: %s", word, ls_error_text());
    va_end(words);
}

static bool is_host_memory(ls_device_stack *stack)
{
    return ls_device_stack_memory(stack) ==
           (uintptr_t)ls_device_stack_host(stack);
}

static void fill(ls_device_stack *stack, unsigned seed)
{
    unsigned char *const host = ls_device_stack_host(stack);
    for (size_t i = 0; i < ls_device_stack_capacity(stack); i++)
        host[i] = (unsigned char)(i * 7 + seed);
}

static void assert_filled(ls_device_stack *stack, unsigned seed, size_t from,
                          size_t to)
{
    const unsigned char *const host = ls_device_stack_host(stack);
    for (size_t i = from; i < to; i++)
        if (host[i] != (unsigned char)(i * 7 + seed))
            fail_msg("byte %zu is %u", i, host[i]);
}

/* Where the two memories are one, what was in it would be gone. */
static void forget(ls_device_stack *stack)
{
    if (!is_host_memory(stack))
        memset(ls_device_stack_host(stack), 0, ls_device_stack_capacity(stack));
}

void a_device_says_what_it_is(ls_device *device)
{
    struct ls_device_info info;
    ls_device_info(device, &info);
    const bool is_cpu = strncmp(info.name, "cpu", 3) == 0;
    assert_int_equal(info.kind, is_cpu ? LS_DEVICE_CPU : LS_DEVICE_CUDA);
    assert_true(strlen(info.description) > 0);
}

void a_stack_has_its_capacity_in_both_memories(ls_device *device)
{
    struct ls_device_info info;
    ls_device_info(device, &info);
    ls_device_stack *stack = new_stack(device, BYTES);
    assert_int_equal(ls_device_stack_capacity(stack), BYTES);
    assert_int_equal((uintptr_t)ls_device_stack_host(stack) % 64, 0);
    assert_int_not_equal(ls_device_stack_memory(stack), 0);
    const bool is_cpu = info.kind == LS_DEVICE_CPU;
    assert_int_equal(is_host_memory(stack), is_cpu);
    assert_int_equal(ls_device_stack_stream(stack) == NULL, is_cpu);
    assert_int_equal(ls_device_stack_event(stack) == NULL, is_cpu);
    ls_device_stack_destroy(&stack);
    assert_null(stack);
}

void what_was_uploaded_can_be_downloaded(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    fill(stack, 1);
    upload(stack, 0, BYTES);
    wait_for(stack);
    forget(stack);
    download(stack, 0, BYTES);
    wait_for(stack);
    assert_filled(stack, 1, 0, BYTES);
    ls_device_stack_destroy(&stack);
}

void a_part_is_copied_and_no_more(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    fill(stack, 1);
    upload(stack, 0, BYTES);
    wait_for(stack);
    if (!is_host_memory(stack)) {
        fill(stack, 2);
        upload(stack, 100, 200);
        wait_for(stack);
        fill(stack, 3);
        download(stack, 50, 300);
        wait_for(stack);
        assert_filled(stack, 3, 0, 50);
        assert_filled(stack, 1, 50, 100);
        assert_filled(stack, 2, 100, 300);
        assert_filled(stack, 1, 300, 350);
        assert_filled(stack, 3, 350, BYTES);
    }
    ls_device_stack_destroy(&stack);
}

void a_stack_serves_one_batch_after_the_other(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    const void *const host = ls_device_stack_host(stack);
    const uintptr_t memory = ls_device_stack_memory(stack);
    for (unsigned batch = 0; batch < 20; batch++) {
        fill(stack, batch);
        upload(stack, 0, BYTES);
        download(stack, 0, BYTES);
        wait_for(stack);
        assert_filled(stack, batch, 0, BYTES);
        assert_ptr_equal(ls_device_stack_host(stack), host);
        assert_int_equal(ls_device_stack_memory(stack), memory);
    }
    ls_device_stack_destroy(&stack);
}

void stacks_have_nothing_in_common(ls_device *device)
{
    ls_device_stack *stacks[4];
    for (unsigned i = 0; i < 4; i++) {
        stacks[i] = new_stack(device, BYTES);
        fill(stacks[i], i);
        upload(stacks[i], 0, BYTES);
    }
    for (unsigned i = 0; i < 4; i++) {
        wait_for(stacks[i]);
        forget(stacks[i]);
        download(stacks[i], 0, BYTES);
    }
    for (unsigned i = 0; i < 4; i++) {
        wait_for(stacks[i]);
        assert_filled(stacks[i], i, 0, BYTES);
        ls_device_stack_destroy(&stacks[i]);
    }
}

void a_copy_of_nothing_is_done(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    upload(stack, BYTES, 0);
    download(stack, 0, 0);
    assert_int_equal(ls_device_stack_wait(stack, LS_NOW), LS_OK);
    ls_device_stack_destroy(&stack);
}

void a_copy_beyond_the_capacity_is_refused(ls_device *device)
{
    static const struct {
        size_t offset, size;
    } wrong[] = {
        {0, BYTES + 1}, {1, BYTES},    {BYTES + 1, 0},
        {BYTES, 1},     {SIZE_MAX, 2}, {1, SIZE_MAX},
    };
    ls_device_stack *stack = new_stack(device, BYTES);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const size_t offset = wrong[i].offset, size = wrong[i].size;
        assert_int_equal(ls_device_stack_upload(stack, offset, size),
                         LS_EINVAL);
        assert_int_equal(ls_device_stack_download(stack, offset, size),
                         LS_EINVAL);
        assert_said("beyond the 4096 of the stack", NULL);
    }
    ls_device_stack_destroy(&stack);
}

void a_wait_for_nothing_is_over_at_once(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    assert_int_equal(ls_device_stack_wait(stack, LS_NOW), LS_OK);
    assert_int_equal(ls_device_stack_wait(stack, LS_FOREVER), LS_OK);
    ls_device_stack_destroy(&stack);
}

void a_stack_of_nothing_is_refused(ls_device *device)
{
    ls_device_stack *stack = NULL;
    assert_int_equal(ls_device_stack_create(&stack, device, 0), LS_EINVAL);
    assert_null(stack);
}

void a_stack_of_more_than_there_is_is_refused(ls_device *device)
{
    struct ls_device_info info;
    ls_device_info(device, &info);
    ls_device_stack *stack = NULL;
    assert_int_equal(ls_device_stack_create(&stack, device, too_many),
                     LS_ENOMEM);
    assert_said(info.name, "a stack of 1152921504606846975 bytes", NULL);
    assert_null(stack);
}

static void copy_elsewhere(void *arg)
{
    ls_device_stack *const stack = arg;
    upload(stack, 0, BYTES);
    wait_for(stack);
}

void any_thread_may_use_a_stack(ls_device *device)
{
    ls_device_stack *stack = new_stack(device, BYTES);
    fill(stack, 5);
    ls_thread *thread;
    assert_int_equal(ls_thread_spawn(ls_runtime_threads(), &thread, "copies",
                                     copy_elsewhere, stack),
                     LS_OK);
    assert_int_equal(ls_thread_join(&thread, LS_FOREVER), LS_OK);
    forget(stack);
    download(stack, 0, BYTES);
    wait_for(stack);
    assert_filled(stack, 5, 0, BYTES);
    ls_device_stack_destroy(&stack);
}

static void bind_here(void *arg)
{
    ls_device *const device = arg;
    assert_int_equal(ls_device_bind_thread(device), LS_OK);
    assert_int_equal(ls_device_bind_thread(device), LS_OK);
}

void a_thread_is_bound(ls_device *device)
{
    ls_thread *thread;
    assert_int_equal(ls_thread_spawn(ls_runtime_threads(), &thread, "bound",
                                     bind_here, device),
                     LS_OK);
    assert_int_equal(ls_thread_join(&thread, LS_FOREVER), LS_OK);
}

void destroy_takes_nothing(ls_device *device)
{
    (void)device;
    ls_device_stack *no_stack = NULL;
    ls_device *no_device = NULL;
    ls_device_stack_destroy(NULL);
    ls_device_stack_destroy(&no_stack);
    ls_device_close(NULL);
    ls_device_close(&no_device);
}

/* Prints the checksum (FNV-1a, 64 bits) and the size of a file; reading and summing overlap.
 *
 *   cc -std=c11 checksum.c $(pkg-config --cflags --libs cosched) -o checksum && ./checksum FILE
 */
#include <cosched.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUFFERS = 4, SIZE_BYTES = 1 << 20 };

struct sum {
    uint64_t hash;
    uint64_t bytes;
};

/* The first stage of the path: fills the empty buffer that it gets. */
static int read_block(void *state, cosched_pipeline_buffer *buffer) {
    FILE *file = state;
    size_t got = fread(cosched_pipeline_buffer_data(buffer), 1, cosched_pipeline_buffer_capacity(buffer), file);
    if (ferror(file))
        return cosched_pipeline_fail(strerror(errno));
    cosched_pipeline_buffer_set_length(buffer, got);
    if (got == 0)
        return COSCHED_PIPELINE_FLOW_END;
    return feof(file) ? COSCHED_PIPELINE_FLOW_LAST : COSCHED_PIPELINE_FLOW_CONTINUE;
}

static int add_block(void *state, cosched_pipeline_buffer *buffer) {
    struct sum *sum = state;
    const unsigned char *data = cosched_pipeline_buffer_data(buffer);
    size_t length = cosched_pipeline_buffer_length(buffer);
    for (size_t i = 0; i < length; i++)
        sum->hash = (sum->hash ^ data[i]) * UINT64_C(0x100000001b3);
    sum->bytes += length;
    return COSCHED_PIPELINE_FLOW_CONTINUE;
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "checksum: %s\n", argc == 2 ? strerror(errno) : "usage: checksum FILE");
        return 2;
    }
    struct sum sum = {UINT64_C(0xcbf29ce484222325), 0};

    cosched_pipeline *pipeline = cosched_pipeline_new("checksum");
    int stages[] = {
        cosched_pipeline_stage(pipeline, "read", COSCHED_PIPELINE_RESOURCE_IO, read_block, file),
        cosched_pipeline_stage(pipeline, "add", COSCHED_PIPELINE_RESOURCE_COMPUTE, add_block, &sum),
    };
    cosched_pipeline_path(pipeline, "blocks", BUFFERS, SIZE_BYTES, stages, 2);

    cosched_error *error = NULL;
    char *report = NULL;
    int failed = cosched_pipeline_run(pipeline, &report, &error);
    if (failed)
        fprintf(stderr, "checksum: %s\n", cosched_error_message(error));
    else
        printf("%016" PRIx64 "  %" PRIu64 "  %s\n", sum.hash, sum.bytes, argv[1]);
    cosched_string_free(report);
    cosched_error_free(error);
    cosched_pipeline_free(pipeline);
    fclose(file);
    return failed ? 1 : 0;
}

// Prints the lines of its input that have not occurred within an hour: cc example.c $(pkg-config --cflags
// --libs lethe-c)
#include <lethe/lethe.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int Fail(void) {
  fprintf(stderr, "%s\n", lethe_error_text());
  return 1;
}

int main(void) {
  lethe_options options;
  lethe_options_init(&options, sizeof options);
  options.horizon_ms = 60 * 60 * 1000;
  options.memory_limit_bytes = 64 << 20;
  lethe_stage* stage = NULL;
  lethe_partition* partition = NULL;
  if (lethe_stage_create(&options, &stage) != LETHE_OK) return Fail();
  if (lethe_partition_open(stage, "lines", &partition) != LETHE_OK) return Fail();
  char line[4096];
  while (fgets(line, sizeof line, stdin) != NULL) {
    uint8_t verdict;
    const int64_t now_ms = (int64_t)time(NULL) * 1000;
    if (lethe_partition_judge(partition, line, strlen(line), now_ms, &verdict) != LETHE_OK) return Fail();
    if (verdict == LETHE_UNIQUE) fputs(line, stdout);
  }
  lethe_partition_free(partition);
  lethe_stage_free(stage);
  return 0;
}

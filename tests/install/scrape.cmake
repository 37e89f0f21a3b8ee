# Feeds the example with lines, and reads its metrics once the filter has the ids of all: run as the first of two
# commands in a pipe, of which the second, the example, writes into OUTPUT. The metrics go to METRICS.
#   cmake -D OUTPUT=... -D METRICS=... -P scrape.cmake
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "a\nb\na\nc\nb")
set(metrics "")
foreach(i RANGE 600)  # a minute
  if(EXISTS ${OUTPUT})
    file(STRINGS ${OUTPUT} url LIMIT_COUNT 1)
  endif()
  if(url)
    file(DOWNLOAD ${url} ${METRICS})
    file(READ ${METRICS} metrics)
  endif()
  if(metrics MATCHES "lethe_filter_ids{partition=\"lines\"} 3")
    return()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 0.1)
endforeach()
message(FATAL_ERROR "the metrics are:\n${metrics}")

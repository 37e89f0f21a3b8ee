# Compares the ABI of the C interface with liblethe.abi beside this file, and proves that a changed struct is found.
#   cmake -D WORK=... -D CC=... -D HEADER=.../lethe.h -P abi_test.cmake
# With -D WRITE=ON it writes liblethe.abi: when the interface has grown, or LETHE_ABI_VERSION.
cmake_minimum_required(VERSION 3.22)
set(dump ${CMAKE_CURRENT_LIST_DIR}/liblethe.abi)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
foreach(tool abidw abidiff)
  find_program(${tool}_program ${tool} REQUIRED)  # abigail-tools on Debian
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${WORK} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE code)
  set(out "${out}" PARENT_SCOPE)
  set(code ${code} PARENT_SCOPE)
endfunction()

# A library with the ABI of a header: each function that it declares, and does nothing. What liblethe.so defines is
# checked against the header by the compiler, and its symbols by install_test.
function(build_library header library)
  string(REGEX REPLACE "LETHE_C_EXPORT ([^;]*);" "LETHE_C_EXPORT \\1 { __builtin_trap(); }" source "${header}")
  file(WRITE ${WORK}/lethe.c "${source}")
  run(${CC} -std=c11 -g -shared -fPIC -Wl,-soname,liblethe.so lethe.c -o ${library})
  if(code)
    message(FATAL_ERROR "the functions of ${HEADER} cannot be defined:\n${out}")
  endif()
endfunction()

file(READ ${HEADER} header)
build_library("${header}" present.so)
if(WRITE)
  run(${abidw_program} --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --out-file ${dump} present.so)
  if(code)
    message(FATAL_ERROR "abidw: ${out}")
  endif()
  return()
endif()
run(${abidiff_program} ${dump} present.so)
if(code)
  message(FATAL_ERROR "the ABI of lethe.h has changed:\n${out}\nIf programs that were built before still run, write "
    "the new ABI: cmake --build build --target liblethe_abi. If not, keep what was there, or raise LETHE_ABI_VERSION.")
endif()

# What would break a program.
foreach(change
    "int64_t unique=int32_t unique"
    "int64_t duplicates=int64_t more, duplicates"
    "size_t id_size,=uint32_t id_size,"
    "LETHE_C_EXPORT int64_t lethe_partition_stream_time=LETHE_C_EXPORT int64_t lethe_partition_time"
    "LETHE_NOT_FOUND = 5=LETHE_NOT_FOUND = 6")
  string(REGEX MATCH "^(.*[^ ])=([^ ].*)$" matched "${change}")
  string(REGEX REPLACE "${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" changed "${header}")
  if(changed STREQUAL header)
    message(FATAL_ERROR "lethe.h has nothing to be changed so: ${change}")
  endif()
  build_library("${changed}" changed.so)
  run(${abidiff_program} ${dump} changed.so)
  if(NOT code)
    message(FATAL_ERROR "abidiff does not find the change ${change}")
  endif()
endforeach()

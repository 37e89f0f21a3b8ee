# Compares fetched jars with their checksums, so that nobody on the way can exchange one:
#   cmake -D JARS=folder -D SUMS=file -P jar_sums.cmake
# With -D WRITE=ON it writes the file, after a change of pom.xml.
file(GLOB jars RELATIVE ${JARS} ${JARS}/*.jar)
list(SORT jars)
set(found "")
foreach(jar ${jars})
  file(SHA256 ${JARS}/${jar} sum)
  string(APPEND found "${sum}  ${jar}\n")
endforeach()
if(WRITE)
  file(WRITE ${SUMS} "${found}")
  return()
endif()
file(READ ${SUMS} expected)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "the jars in ${JARS} are not those of ${SUMS}. Delete the folder and ~/.m2/repository/org/apache, "
    "and fetch them again. If pom.xml has changed: cmake -D JARS=${JARS} -D SUMS=${SUMS} -D WRITE=ON "
    "-P ${CMAKE_CURRENT_LIST_FILE}, and look at the difference")
endif()

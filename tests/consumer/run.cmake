# cmake -D MODE=find_package|add_subdirectory -D SOURCE=<Vitro> -D BUILD=<Vitro's build> -D COMPILER=... -P run.cmake
# Builds and runs the application in a fresh folder below BUILD.
cmake_minimum_required(VERSION 3.20)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGV}")
  endif()
endfunction()

set(work ${BUILD}/consumer_${MODE})
file(REMOVE_RECURSE ${work})
if(MODE STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
  set(options -D CMAKE_PREFIX_PATH=${work}/prefix -D VITRO_PREFIX=${work}/prefix)
else()
  set(options -D VITRO_SOURCE_DIR=${SOURCE})
endif()
# The sources are copied away from Vitro's tree, so that no relative path can reach it by accident.
file(COPY ${CMAKE_CURRENT_LIST_DIR}/application/ DESTINATION ${work}/source)
run(${CMAKE_COMMAND} -S ${work}/source -B ${work}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    "-DCMAKE_CXX_FLAGS=${FLAGS}" -D CMAKE_BUILD_TYPE=None ${options})
run(${CMAKE_COMMAND} --build ${work}/build --target consumer)
run(${work}/build/consumer)

# cmake -D COMPILER=... -D SOURCE=... -D FAULT=... -D MESSAGE=<regex> -P compile_fail.cmake
# SOURCE must compile as it is, and with FAULT defined must fail with a message that matches MESSAGE: without the first half, any
# mistake in the test would pass for the error that is expected.
cmake_minimum_required(VERSION 3.20)

set(compile ${COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Werror)
execute_process(COMMAND ${compile} ${SOURCE} RESULT_VARIABLE code ERROR_VARIABLE errors)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile without a fault:\n${errors}")
endif()
execute_process(COMMAND ${compile} -D${FAULT} ${SOURCE} RESULT_VARIABLE code ERROR_VARIABLE errors)
if(code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with -D${FAULT}")
elseif(NOT errors MATCHES "${MESSAGE}")
  message(FATAL_ERROR "${SOURCE} fails with another message than \"${MESSAGE}\":\n${errors}")
endif()

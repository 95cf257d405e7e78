// SPDX-License-Identifier: Apache-2.0
// Internal: starting a thread where the system may refuse to.
#pragma once

#include "error.hpp"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace vitro {

// Has `thread` run body(). unsupported where the system does not start it; `name` says which it is. Without exceptions the
// standard library ends the program then.
template <class Body>
Status start_thread(std::thread& thread, const std::string& name, Body body) {
#if defined(__cpp_exceptions)
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unsupported, "The system does not start " + name + " (" + error.code().message() +
                                             "); ask for fewer threads, or raise its limits of processes and memory.");
  }
#else
  static_cast<void>(name);
  thread = std::thread(std::move(body));
#endif
  return {};
}

}  // namespace vitro

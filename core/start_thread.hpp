// SPDX-License-Identifier: Apache-2.0
// Internal: starting a thread where the system may refuse to.
#pragma once

#include "error.hpp"

#include <string>
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
  } catch (...) {  // by its type it would leave an address to relocate in the library's data
    return Error(ErrorCode::unsupported,
                 "The system does not start " + name + "; ask for fewer threads, or raise its limits of processes and memory.");
  }
#else
  static_cast<void>(name);
  thread = std::thread(std::move(body));
#endif
  return {};
}

}  // namespace vitro

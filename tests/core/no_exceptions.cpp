// SPDX-License-Identifier: Apache-2.0
// A program without exceptions that makes a programming error. It succeeds if the installed handler is called with the error
// and the program is terminated afterwards: exit code 0 then, another otherwise.
#if defined(__cpp_exceptions)
#error "this program is the test of a build without exceptions"
#endif

#include <cstdlib>
#include <exception>
#include <vitro/core/shape.hpp>

namespace {

int calls = 0;

void handler(const vitro::Error& error) {
  if (error.code() == vitro::ErrorCode::overflow && !error.message().empty()) ++calls;
}

}  // namespace

int main() {
  if (vitro::set_failure_handler(handler) != nullptr) return 2;
  if (vitro::set_failure_handler(handler) != handler) return 3;
  if (vitro::Shape::make(std::array<vitro::Index, 1>{-1}).ok()) return 4;  // outside data: a Result, no handler
  if (calls != 0) return 5;
  std::set_terminate([] { std::_Exit(calls == 1 ? 0 : 6); });
  const vitro::Shape impossible({PTRDIFF_MAX, 2});
  return 7;  // the constructor came back
}

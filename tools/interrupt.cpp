// SPDX-License-Identifier: Apache-2.0
// The signal handler and the two flags that it knows.
#include "interrupt.hpp"

#include "train_options.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace vitro::tools {
namespace {

std::atomic<bool> requested = false;
std::atomic<bool> writing = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // what a signal handler may use

extern "C" void on_interrupt(int) {
  if (requested.exchange(true) && !writing) std::_Exit(kInterrupted);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

bool interrupted() noexcept { return requested; }

WriteInPeace::WriteInPeace() noexcept { writing = true; }
WriteInPeace::~WriteInPeace() { writing = false; }

}  // namespace vitro::tools

// SPDX-License-Identifier: Apache-2.0
// main() of every test program, for Catch2 2.13 and 3: exit code 0 all passed, 4 everything that ran was skipped, 1 otherwise.
// Catch2's own main() returns the number of failed assertions, so that four of them would read as "skipped".
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include "catch2_v2.hpp"

#include <cstdio>

using Listener = Catch::TestEventListenerBase;
#endif

namespace {

int cases_run = 0;
int cases_skipped = 0;
int cases_failed = 0;

class CountCases : public Listener {
 public:
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Listener::testCaseEnded(stats);
    ++cases_run;
    if (!stats.totals.testCases.allOk()) ++cases_failed;
#if !defined(CATCH_CONFIG_RUNNER)
    if (stats.totals.testCases.skipped > 0) ++cases_skipped;
#endif
  }
};
CATCH_REGISTER_LISTENER(CountCases)

}  // namespace

#if defined(CATCH_CONFIG_RUNNER)
namespace vitro_test {

void skip(const std::string& reason) {
  ++cases_skipped;
  std::printf("skipped: %s\n", reason.c_str());
  // The exception by which version 2 leaves a test case after a failed REQUIRE has been reported: by itself it reports nothing.
  throw Catch::TestFailureException();
}

}  // namespace vitro_test
#endif

int main(int argc, char* argv[]) {
  const int code = Catch::Session().run(argc, argv);
  if (cases_run == 0) return code;  // a list or a usage error
  if (cases_failed > 0) return 1;
  return cases_skipped == cases_run ? 4 : 0;
}

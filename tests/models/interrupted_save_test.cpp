// SPDX-License-Identifier: Apache-2.0
// A save that is killed at any moment: the folder holds the old state or the new one, whole, and the next save tidies up.
#include "../support/system_calls.hpp"
#include "../support/temporary_folder.hpp"
#include "small_training.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>
#include <vitro/core/file.hpp>
#include <vitro/models/model_folder.hpp>
#include <vitro/models/training_file.hpp>

using namespace vitro;
using vitro_test::quarters;
using vitro_test::small_model;
using vitro_test::small_options;

namespace {

namespace fs = std::filesystem;

// A model after so many steps; saved with its training or alone.
struct State {
  Model model;
  std::optional<Training> training;

  void save(const std::string& folder) const {
    (training ? try_save_training(folder, model, *training) : model.try_save(folder)).value();
  }
  // What decides how it goes on.
  std::string digest() const {
    if (!training) return model.weights_sha256();
    return model.weights_sha256() + " " + std::to_string(training->state.step) + " " +
           weights_sha256(named_views(training->state.velocity));
  }
};

State state_after(int steps, bool with_training) {
  static const Dataset data = quarters(100, 8);
  Context context;
  State state{small_model(), std::nullopt};
  Trainer trainer(context, state.model, data, small_options());
  for (int step = 0; step < steps; ++step) trainer.try_step().value();
  if (with_training) state.training = Training{trainer.options(), data.size(), data_xxh64(data), trainer.state(), {}};
  return state;
}

std::string digest_of(const std::string& folder) {
  State state{Model::load(folder), std::nullopt};
  state.training = try_load_training(folder, state.model).value();
  return state.digest();
}

// Saves in a process of its own that is killed before call number `stop`; whether it was.
bool killed_in_save(const State& state, const std::string& folder, int stop) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    vitro_test::stop_before_call(stop);
    state.save(folder);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == vitro_test::kStopped));
  return WEXITSTATUS(status) == vitro_test::kStopped;
}

std::size_t saved_files(const std::string& folder) {
  const std::vector<std::string> names = list_folder(folder).value();
  return static_cast<std::size_t>(std::ranges::count_if(names, [](const std::string& name) { return is_saved_file(name); }));
}

}  // namespace

TEST_CASE("A save that is killed at any moment leaves the old state or the new one, and the next save cleans up") {
  struct Pair {
    bool old_training, new_training;
  };
  for (const Pair& pair : {Pair{true, true}, Pair{false, true}, Pair{true, false}}) {
    const State before = state_after(2, pair.old_training), after = state_after(4, pair.new_training);
    const vitro_test::TemporaryFolder root;
    const std::string old_folder = root.path() + "/old", folder = root.path() + "/model";
    before.save(old_folder);
    int olds = 0, news = 0;
    for (int stop = 0;; ++stop) {
      fs::remove_all(folder);
      fs::copy(old_folder, folder);
      const bool killed = killed_in_save(after, folder, stop);
      const std::string digest = digest_of(folder);
      INFO("killed before call " << stop);
      REQUIRE((digest == before.digest() || digest == after.digest()));
      ++(digest == before.digest() ? olds : news);
      after.save(folder);
      REQUIRE(digest_of(folder) == after.digest());
      REQUIRE(saved_files(folder) == (pair.new_training ? 3U : 1U));
      if (!killed) break;
    }
    CHECK(olds >= (pair.new_training ? 15 : 7));  // write, fsync, rename and the folder's fsync of each file, then model.json
    CHECK(news >= 3);                             // the folder's fsync, what is removed, and the save that nobody killed
  }
}

TEST_CASE("The first save of a folder, killed at any moment, leaves no model or a whole one") {
  const State state = state_after(3, true);
  bool killed = true;
  for (int stop = 0; killed; ++stop) {
    const vitro_test::TemporaryFolder folder;
    killed = killed_in_save(state, folder.path(), stop);
    if (fs::exists(folder.path() + "/model.json")) {
      REQUIRE(digest_of(folder.path()) == state.digest());
    } else {
      REQUIRE(killed);
    }
  }
}

TEST_CASE("model.json is renamed after all that it names is on the disk, and nothing is removed before it is there itself") {
  const vitro_test::TemporaryFolder folder;
  state_after(2, true).save(folder.path());
  vitro_test::watch_calls();
  state_after(4, true).save(folder.path());
  const std::vector<std::string> calls = vitro_test::watched_calls();
  const auto commit = std::ranges::find_if(calls, [](const std::string& call) { return call.ends_with("/model.json"); });
  REQUIRE(commit != calls.end());
  CHECK(commit->starts_with("rename "));
  const std::string folder_flushed = "fsync " + folder.path();
  const auto is_removal = [](const std::string& call) { return call.starts_with("unlink "); };
  CHECK(std::count(calls.begin(), commit, folder_flushed) == 3);
  CHECK(std::count_if(calls.begin(), commit, is_removal) == 0);
  REQUIRE(commit + 1 != calls.end());
  CHECK(*(commit + 1) == folder_flushed);
  CHECK(std::count_if(commit, calls.end(), is_removal) == 3);
}

TEST_CASE("A save that fails leaves the old state and none of its own files") {
  const vitro_test::TemporaryFolder folder;
  const State before = state_after(2, true);
  before.save(folder.path());
  fs::remove(folder.path() + "/model.json");
  fs::create_directory(folder.path() + "/model.json");  // which no file may replace
  const State after = state_after(4, true);
  CHECK_FALSE(try_save_training(folder.path(), after.model, *after.training).ok());
  CHECK(saved_files(folder.path()) == 3);
  fs::remove(folder.path() + "/model.json");
  before.save(folder.path());
  CHECK(digest_of(folder.path()) == before.digest());
}

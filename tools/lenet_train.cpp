// SPDX-License-Identifier: Apache-2.0
// lenet_train: trains LeNet-5 on MNIST idx files, saves it, goes on with it, evaluates it.
#include "../core/file.hpp"
#include "../core/text.hpp"
#include "../models/lenet.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "train_options.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace vitro::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}

struct DataChoice {
  std::string folder;
  bool is_sample = false;
};

DataChoice choose_data(const std::string& given) {
  if (!given.empty()) return {given};
  if (const char* folder = std::getenv("VITRO_MNIST_DIR"); folder != nullptr && *folder != '\0') return {folder};
  std::error_code ignored;
  if (std::filesystem::is_directory("data/mnist", ignored)) return {"data/mnist"};
  if (std::filesystem::is_directory("data/sample", ignored)) return {"data/sample", true};
  fail(ErrorCode::io,
       "no data: give --data DIR or set VITRO_MNIST_DIR; neither data/mnist nor data/sample is in this folder. "
       "tools/fetch_mnist.sh DIR downloads MNIST");
}

// One run of the program, from the command line to the exit code.
class Run {
 public:
  explicit Run(const TrainCommand& command) : command_(command), context_({command.isa, command.threads}) {}

  int execute() {
    const DataChoice choice = choose_data(command_.data);
    data_ = load_mnist(choice.folder);
    data_folder_ = choice.folder;
    if (choice.is_sample) {
      std::fputs(
          "lenet_train: NOTE: no MNIST found; using the small Fashion-MNIST sample in data/sample. Its accuracy says little.\n",
          stderr);
    }
    check_outputs();
    if (command_.eval) return evaluate_only();
    prepare();
    if (!command_.quiet) print_setup();
    return train();
  }

 private:
  // Where results will go is tried now, so that nothing is lost at the end of a long training.
  void check_outputs() const {
    if (!command_.save.empty()) make_directories(command_.save).value();
    if (command_.report.empty()) return;
    const std::filesystem::path path(command_.report);
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored) || std::filesystem::is_directory(path, ignored)) {
      fail(ErrorCode::io,
           "--report: cannot write " + vitro::quoted(command_.report) + ": it must name a file in a folder that exists");
    }
  }

  int evaluate_only() {
    const Model model = Model::load(command_.load);
    const Evaluation test = evaluate(context_, model, data_.test);
    Report report = make_report(model);
    report.options = nullptr;
    report.train_images = 0;
    return finish(report, test);
  }

  // The model and the trainer: new, from weights, or from a training that was saved.
  void prepare() {
    TrainOptions options;
    Training saved;
    const bool resumes = !command_.load.empty() && has_training(command_.load);
    if (!command_.load.empty()) model_ = std::make_unique<Model>(Model::load(command_.load));
    if (resumes) {
      saved = try_load_training(command_.load, *model_).value();
      options = saved.options;
      same_as_saved("--batch", command_.batch, options.batch);
      same_as_saved("--seed", command_.seed, options.seed);
      same_as_saved("--recipe", command_.recipe, options.recipe.name);
      same_as_saved("--limit", command_.limit, saved.samples);
      limit_ = saved.samples;
    } else {
      options.batch = command_.batch.value_or(options.batch);
      options.seed = command_.seed.value_or(options.seed);
      options.recipe = try_recipe(command_.recipe.value_or("default")).value();
      limit_ = command_.limit;
    }
    options.epochs = command_.epochs.value_or(options.epochs);
    if (!model_) model_ = std::make_unique<Model>(models::lenet5(options.seed));
    if (limit_ && *limit_ < data_.train.size()) data_.train = first_images(data_.train, *limit_);
    if (resumes && data_.train.size() != saved.samples) {
      fail(ErrorCode::invalid_argument, "--load: the training in " + vitro::quoted(command_.load) + " runs over " +
                                            std::to_string(saved.samples) + " images; " + vitro::quoted(data_folder_) +
                                            " has " + std::to_string(data_.train.size()));
    }
    trainer_ = Trainer::try_make(context_, *model_, data_.train, options).value();
    if (resumes) {
      trainer_->try_restore(std::move(saved.state)).value();
      history_ = std::move(saved.history);
      resumed_ = true;
    }
  }

  template <class T>
  void same_as_saved(const char* option, const std::optional<T>& given, const T& saved) const {
    if (!given || *given == saved) return;
    const auto text = [](const auto& value) {
      if constexpr (std::is_convertible_v<decltype(value), std::string>) {
        return std::string(value);
      } else {
        return std::to_string(value);
      }
    };
    fail(ErrorCode::invalid_argument,
         std::string(option) + " " + text(*given) + ": the training in " + vitro::quoted(command_.load) + " runs with " +
             text(saved) + "; leave the option out to go on with it, or remove " +
             vitro::quoted(command_.load + "/" + kTrainingFile) + " to start a new training from its weights");
  }

  void print_setup() const {
    const TrainOptions& o = trainer_->options();
    std::printf("LeNet-5, %td parameters; %td training and %td test images from %s\n", model_->parameter_count(),
                data_.train.size(), data_.test.size(), data_folder_.c_str());
    std::printf("%td epochs, batch %td, recipe %s, seed %llu; %s kernels, %d thread%s\n", o.epochs, o.batch,
                o.recipe.name.c_str(), static_cast<unsigned long long>(o.seed), context_.kernels().name, context_.threads(),
                context_.threads() == 1 ? "" : "s");
    if (resumed_) {
      std::printf("going on with the training in %s at epoch %td, step %td\n", command_.load.c_str(),
                  trainer_->state().epoch + 1, trainer_->state().step + 1);
    }
    std::fflush(stdout);
  }

  int train() {
    const Index images = data_.train.size();
    const TrainState& state = trainer_->state();
    Progress progress(Progress::style_for(command_.quiet), trainer_->options().epochs, images,
                      state.epoch * images + state.totals.samples);
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    Evaluation test;
    bool evaluated = false;
    while (!trainer_->finished() && interrupted == 0) {
      const Clock::time_point start = Clock::now();
      if (!train_epoch(progress)) break;
      test = evaluate(context_, *model_, data_.test);
      evaluated = true;
      const EpochTotals& totals = trainer_->last_epoch();
      history_.push_back({totals.loss(), totals.accuracy(), test.accuracy(), seconds_since(start)});
      progress.epoch(state.epoch - 1, history_.back());
      save();
    }
    progress.end_line();
    const bool stopped = interrupted != 0 && !trainer_->finished();
    if (stopped) save();
    if (!evaluated || stopped) test = evaluate(context_, *model_, data_.test);
    Report report = make_report(*model_);
    report.interrupted = stopped;
    const int code = finish(report, test);
    return stopped ? say_stopped() : code;
  }

  // False if interrupted before the epoch's end.
  bool train_epoch(Progress& progress) {
    const Index epoch = trainer_->state().epoch;
    while (trainer_->state().epoch == epoch) {
      if (interrupted != 0) return false;
      if (Status status = trainer_->try_step(); !status) {
        progress.end_line();
        status.value();
      }
      const bool ended = trainer_->state().epoch != epoch;
      const EpochTotals& totals = ended ? trainer_->last_epoch() : trainer_->state().totals;
      progress.step(epoch, totals.samples, totals);
    }
    return true;
  }

  void save() const {
    if (command_.save.empty()) return;
    model_->try_save(command_.save).value();
    try_save_training(command_.save, *model_, {trainer_->options(), data_.train.size(), trainer_->state(), history_}).value();
  }

  int say_stopped() const {
    if (command_.save.empty()) {
      std::fputs("lenet_train: interrupted; nothing was saved, since --save was not given\n", stderr);
    } else {
      std::fprintf(stderr, "lenet_train: interrupted; saved in %s. To go on: lenet_train --load %s --save %s\n",
                   command_.save.c_str(), command_.save.c_str(), command_.save.c_str());
    }
    return kInterrupted;
  }

  Report make_report(const Model& model) const {
    Report report;
    report.options = trainer_ ? &trainer_->options() : nullptr;
    report.data_folder = data_folder_;
    report.train_images = data_.train.size();
    report.limit = limit_;
    report.epochs = history_;
    report.isa = context_.kernels().name;
    report.threads = context_.threads();
    report.weights_sha256 = model.weights_sha256();
    report.tape_bytes = trainer_ ? trainer_->record_bytes() : 0;
    report.seconds = seconds_since(start_);
    return report;
  }

  int finish(const Report& report, const Evaluation& test) const {
    if (!command_.quiet) {
      std::fputs(confusion_text(test).c_str(), stdout);
      if (report.tape_bytes > 0)
        std::printf("Tape of the last training step: %zu bytes (nodes and tensor table)\n", report.tape_bytes);
      std::printf("Weights: sha256 %s\n", report.weights_sha256.c_str());
    }
    std::printf("Test accuracy: %.2f %% (%td of %td)\n", 100.0 * test.accuracy(), test.correct, test.samples);
    if (!command_.report.empty()) write_report(command_.report, report, test).value();
    return kSuccess;
  }

  const TrainCommand& command_;
  Clock::time_point start_ = Clock::now();
  Context context_;
  MnistData data_;
  std::string data_folder_;
  std::optional<Index> limit_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<EpochRecord> history_;
  bool resumed_ = false;
};

}  // namespace
}  // namespace vitro::tools

int main(int argc, char** argv) {
  using namespace vitro;
  const tools::Parsed parsed = tools::parse_command_line(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  try {
    return tools::Run(parsed.command).execute();
  } catch (const Error& error) {
    std::fprintf(stderr, "lenet_train: %s\n", error.what());
    return error.code() == ErrorCode::non_finite ? tools::kNotFinite : tools::kFailure;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lenet_train: %s\n", error.what());
    return tools::kFailure;
  }
}

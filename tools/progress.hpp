// SPDX-License-Identifier: Apache-2.0
// Progress on standard output: a bar that redraws itself on a terminal, one line an epoch elsewhere.
#pragma once

#include "../models/training_file.hpp"

#include <chrono>
#include <string>

namespace vitro::tools {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);

// "1:05:09", "4:07", "12 s".
std::string format_duration(double seconds);

class Progress {
 public:
  enum class Style { bar, lines, none };

  // The style for this program: none if quiet, else a bar if standard output is a terminal that can redraw a line.
  static Style style_for(bool quiet);

  // `first_image` counts images of the whole training already done when the program starts (a resumed training).
  Progress(Style style, Index epochs, Index images_per_epoch, Index first_image);

  // Around the steps of an epoch: images/s counts the time between them, the time left also that of evaluation and saving.
  void begin_training();
  void end_training();

  // Whether step() would draw now: at most ten times a second.
  bool wants_step() const;
  // After a step: `done` images of epoch `epoch` (from 0) are trained on.
  void step(Index epoch, Index done, const EpochTotals& totals);
  // After an epoch and its evaluation: a line that stays.
  void epoch(Index epoch, const EpochRecord& record);
  // Ends the bar's line, if one is drawn, so that something else can be printed.
  void end_line();

 private:
  void draw(const std::string& text);

  Style style_;
  Index epochs_, images_per_epoch_;
  Index first_image_, epoch_begin_;  // of the whole training: at the program's start, and where it began this epoch
  Clock::time_point start_ = Clock::now();
  Clock::time_point training_since_ = start_;
  double epoch_seconds_ = 0;  // of the epoch that end_training() ended
  Clock::time_point drawn_{};
  bool open_line_ = false;
};

}  // namespace vitro::tools

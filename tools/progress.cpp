// SPDX-License-Identifier: Apache-2.0
// Drawing the bar and the lines.
#include "progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace vitro::tools {
namespace {

template <class... T>
std::string format(const char* pattern, T... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, pattern, values...);
  return std::string(text, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1)));
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string format_duration(double seconds) {
  const long whole = std::lround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return format("%ld:%02ld", whole / 60, whole % 60);
  return format("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Style Progress::style_for(bool quiet) {
  if (quiet) return Style::none;
  const char* term = std::getenv("TERM");
  const bool redraws = isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  return redraws ? Style::bar : Style::lines;
}

Progress::Progress(Style style, Index epochs, Index images_per_epoch, Index first_image)
    : style_(style),
      epochs_(epochs),
      images_per_epoch_(images_per_epoch),
      first_image_(first_image),
      epoch_begin_(first_image) {}

void Progress::begin_training() { training_since_ = Clock::now(); }
void Progress::end_training() { epoch_seconds_ = seconds_since(training_since_); }

bool Progress::wants_step() const { return style_ == Style::bar && Clock::now() - drawn_ >= std::chrono::milliseconds(100); }

void Progress::step(Index epoch, Index done, const EpochTotals& totals) {
  if (style_ != Style::bar) return;
  drawn_ = Clock::now();
  const Index trained = epoch * images_per_epoch_ + done;
  const double rate = static_cast<double>(trained - epoch_begin_) / std::max(seconds_since(training_since_), 1e-9);
  const double all_in_all = seconds_since(start_) / static_cast<double>(std::max<Index>(trained - first_image_, 1));
  const double left = static_cast<double>(epochs_ * images_per_epoch_ - trained) * all_in_all;
  const double share = static_cast<double>(done) / static_cast<double>(images_per_epoch_);
  const std::string head = format("epoch %*td/%td ", static_cast<int>(std::to_string(epochs_).size()), epoch + 1, epochs_);
  const std::string tail =
      format(" %3.0f %%  loss %.4f  %.0f images/s  ", 100.0 * share, totals.loss(), rate) + format_duration(left) + " left";
  const std::size_t used = head.size() + tail.size() + 3;
  const std::size_t room = terminal_width();
  if (room < used + 4) return draw((head + tail).substr(0, room - 1));
  const std::size_t width = std::min<std::size_t>(room - used, 40);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  draw(head + "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]" + tail);
}

void Progress::epoch(Index epoch, const EpochRecord& record) {
  if (style_ == Style::none) return;
  if (style_ == Style::bar) std::fputs("\r\x1b[K", stdout);
  open_line_ = false;
  const Index trained = (epoch + 1) * images_per_epoch_ - epoch_begin_;
  epoch_begin_ += trained;
  std::printf("epoch %*td/%td  loss %.4f  train %6.2f %%  test %6.2f %%  %.1f s  %.0f images/s\n",
              static_cast<int>(std::to_string(epochs_).size()), epoch + 1, epochs_, record.loss, 100.0 * record.train_accuracy,
              100.0 * record.test_accuracy, record.seconds, static_cast<double>(trained) / std::max(epoch_seconds_, 1e-9));
  std::fflush(stdout);
}

void Progress::end_line() {
  if (open_line_) std::fputs("\n", stdout);
  open_line_ = false;
}

void Progress::draw(const std::string& text) {
  std::fputs(("\r" + text + "\x1b[K").c_str(), stdout);
  std::fflush(stdout);
  open_line_ = true;
}

}  // namespace vitro::tools

// SPDX-License-Identifier: Apache-2.0
// Rows of text, and rectangles.
#include "arena_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace vitro::tools {
namespace {

using Block = Plan::ArenaBlock;

std::vector<Block> by_place(const Plan& plan) {
  std::vector<Block> blocks(plan.arena_map().begin(), plan.arena_map().end());
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return std::pair(a.offset, a.first) < std::pair(b.offset, b.first); });
  return blocks;
}

std::uint32_t step_count(const std::vector<Block>& blocks) {
  std::uint32_t count = 1;
  for (const Block& block : blocks) count = std::max(count, block.last + 1);
  return count;
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string right(std::size_t number, std::size_t width) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string sizes(const Plan& plan) {
  return std::to_string(plan.arena_bytes()) + " bytes, lower bound " + std::to_string(plan.arena_lower_bound());
}

// --- SVG ---

constexpr double kWidth = 1000, kHeight = 560, kLeft = 90, kTop = 40, kBottom = 50;

std::string number(double value) {
  const auto tenths = std::llround(value * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string attribute(const char* name, double value) { return std::string(" ") + name + "=\"" + number(value) + "\""; }

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\">" + text + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) + " " + style + "/>\n";
}

// From steps and bytes to places in the picture.
struct Scale {
  double step, byte;
  double x(double steps) const { return kLeft + step * steps; }
  double y(double bytes) const { return kTop + kHeight - byte * bytes; }
};

std::string block_svg(const Plan& plan, const Block& block, const Scale& scale, std::size_t index) {
  constexpr std::array kColours = {"#9ecae1", "#a1d99b", "#fdd0a2", "#dadaeb", "#fcbba1", "#d9d9d9", "#fee391"};
  const double x = scale.x(block.first), width = scale.x(block.last + 1.0) - x;
  const double top = scale.y(static_cast<double>(block.offset + block.bytes));
  const double height = scale.y(static_cast<double>(block.offset)) - top;
  const std::string id = to_string(block.tensor);
  std::string text = "<g><title>" + plan.tensor_text(block.tensor) + ": " + std::to_string(block.bytes) + " bytes at " +
                     std::to_string(block.offset) + ", steps " + std::to_string(block.first) + " to " +
                     std::to_string(block.last) + "</title>\n<rect" + attribute("x", x) + attribute("y", top) +
                     attribute("width", width) + attribute("height", height) + " fill=\"" + kColours[index % kColours.size()] +
                     "\" stroke=\"#444\" stroke-width=\"0.5\"/>\n";
  const bool fits = height >= 11 && width >= 7 * static_cast<double>(id.size());
  if (fits) text += text_at(x + width / 2, top + height / 2 + 4, "middle", id);
  return text + "</g>\n";
}

}  // namespace

std::string arena_text(const Plan& plan) {
  constexpr std::uint32_t kColumns = 64;
  const std::vector<Block> blocks = by_place(plan);
  const std::uint32_t steps = step_count(blocks), per_column = (steps + kColumns - 1) / kColumns;
  std::size_t width = 6;
  for (const Block& block : blocks) width = std::max(width, plan.tensor_text(block.tensor).size());
  std::string text = "arena: " + sizes(plan) + "; one column is " + std::to_string(per_column) +
                     (per_column == 1 ? " step" : " steps") + "\n    offset      bytes  " + left("tensor", width) +
                     "  steps      0\n";
  for (const Block& block : blocks) {
    text += right(block.offset, 10) + " " + right(block.bytes, 10) + "  " + left(plan.tensor_text(block.tensor), width) + "  " +
            left(std::to_string(block.first) + "-" + std::to_string(block.last), 9) + "  ";
    for (std::uint32_t column = 0; column * per_column < steps; ++column) {
      const bool needed = block.first / per_column <= column && column <= block.last / per_column;
      text += needed ? '#' : '.';
    }
    text += '\n';
  }
  return text;
}

std::string arena_svg(const Plan& plan) {
  const std::vector<Block> blocks = by_place(plan);
  const std::uint32_t steps = step_count(blocks);
  const double most = static_cast<double>(std::max<std::size_t>(plan.arena_bytes(), 1));
  const Scale scale{kWidth / steps, kHeight / most};
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kLeft + kWidth + 30) + " " +
                     number(kTop + kHeight + kBottom) + "\" font-family=\"sans-serif\" font-size=\"11\">\n" +
                     "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
                     text_at(kLeft, kTop - 20, "start", "Arena: " + sizes(plan) + " (dashed)");
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes > 0) text += block_svg(plan, blocks[i], scale, i);
  }
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double bytes = most * quarter / 4;
    text += line(kLeft - 4, scale.y(bytes), kLeft, scale.y(bytes), "stroke=\"#444\"");
    text += text_at(kLeft - 8, scale.y(bytes) + 4, "end", std::to_string(static_cast<long long>(bytes)));
  }
  const std::uint32_t stride = (steps + 19) / 20;
  for (std::uint32_t step = 0; step < steps; step += stride) {
    text += text_at(scale.x(step + 0.5), kTop + kHeight + 16, "middle", std::to_string(step));
  }
  text += text_at(kLeft + kWidth / 2, kTop + kHeight + 38, "middle", "step");
  text += line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight, "stroke=\"#444\"");
  const double bound = scale.y(static_cast<double>(plan.arena_lower_bound()));
  text += line(kLeft, bound, kLeft + kWidth, bound, "stroke=\"#c00\" stroke-dasharray=\"6 4\"");
  return text + "</svg>\n";
}

}  // namespace vitro::tools

// SPDX-License-Identifier: Apache-2.0
// A plan in words: the table of its steps, and the same as a graph.
#include "graph.hpp"
#include "plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace vitro {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string aligned_right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

// "17.3 M", with a digit after the point unless it is a whole number under 1000.
std::string scaled(double number, double base, const std::array<const char*, 4>& units) {
  std::size_t unit = 0;
  for (; number >= base && unit + 1 < units.size(); ++unit) number /= base;
  const auto tenths = static_cast<long long>(std::floor(number * 10 + 0.5));
  return std::to_string(tenths / 10) + (unit == 0 ? "" : "." + std::to_string(tenths % 10)) + " " + units[unit];
}

std::string bytes_text(std::size_t bytes) { return scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB"}); }

std::string exact_bytes_text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string flops_text(double flops) { return scaled(flops, 1000, {"flop", "kflop", "Mflop", "Gflop"}); }

std::string operation(std::span<const Node> step) {
  std::string text;
  const bool updates = std::holds_alternative<SgdUpdate>(step.back());  // in any order: each operation once, and how often
  for (std::size_t i = 0; i < step.size(); ++i) {
    const auto is_same = [&](const Node& n) { return n.index() == step[i].index(); };
    if (updates && std::any_of(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(i), is_same)) continue;
    const auto same = updates ? std::count_if(step.begin(), step.end(), is_same) : 1;
    text += (text.empty() ? "" : " + ") + std::string(name(step[i])) + (same > 1 ? " x" + std::to_string(same) : "");
  }
  return text;
}

// What a step reads and writes outside of itself.
struct Operands {
  std::vector<TensorId> inputs, outputs;
};

Operands operands_of(std::span<const Node> step, const TensorTable& tensors) {
  Operands operands;
  const auto add = [&](std::vector<TensorId>& list, TensorId id) {
    if (!is_nowhere(tensors[id].place) && std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  };
  for (const Node& node : step) {
    for (TensorId id : inputs_of(node)) add(operands.inputs, id);
    for (TensorId id : outputs_of(node)) add(operands.outputs, id);
  }
  return operands;
}

std::string place_text(const Plan& plan, const TensorInfo& info) {
  if (info.place.base == Plan::kArena) return "arena @" + std::to_string(info.place.offset);
  if (info.place.base == Plan::kConstants)
    return "constant @" + std::to_string(info.place.offset) + (info.packed ? ", packed" : "");
  constexpr const char* kKinds[] = {"input", "parameter", "output"};
  return kKinds[static_cast<std::size_t>(plan.ports()[info.place.base - Plan::kFirstPort].kind)];
}

std::string port_text(const Plan& plan, const TensorTable& tensors, TensorId id) {
  const TensorInfo& info = tensors[id];
  return describe(id, tensors) + " (" + place_text(plan, info) + ", " + std::to_string(bytes_of(info.shape, info.type)) + " B)";
}

double flops_of(std::span<const Node> step, const TensorTable& tensors) {
  double sum = 0;
  for (const Node& node : step) sum += flops(node, tensors);
  return sum;
}

// The rows of one step: its name and count beside the first of its tensors, then one row for each of the others.
std::string step_rows(const Plan& plan, const TensorTable& tensors, std::size_t number, std::span<const Node> step,
                      std::size_t width, std::size_t tensor_width) {
  const Operands operands = operands_of(step, tensors);
  const auto has = [](const std::vector<TensorId>& list, TensorId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  std::string text;
  std::string head = aligned_right(std::to_string(number), 4) + "  " + padded(operation(step), width) + "  " +
                     aligned_right(flops_text(flops_of(step, tensors)), 11) + "  ";
  const auto row = [&](const char* verb, TensorId id) {
    text += head + padded(verb, 8) + padded(vitro::describe(id, tensors), tensor_width) + "  " +
            aligned_right(bytes_text(bytes_of(tensors.shape(id), tensors[id].type)), 10) + "  " +
            place_text(plan, tensors[id]) + "\n";
    head = std::string(head.size(), ' ');
  };
  for (TensorId id : operands.outputs) row(has(operands.inputs, id) ? "updates" : "writes", id);
  for (TensorId id : operands.inputs) {
    if (!has(operands.outputs, id)) row("reads", id);
  }
  return text;
}

}  // namespace

std::string Plan::tensor_text(TensorId x) const { return vitro::describe(x, graph_->tensors); }

std::string Plan::describe() const {
  const TensorTable& tensors = graph_->tensors;
  std::size_t width = 9, tensor_width = 6;
  for (std::size_t i = 0; i < graph_->ends.size(); ++i) {
    width = std::max(width, operation(graph_->step(i)).size());
    const Operands operands = operands_of(graph_->step(i), tensors);
    for (const auto* list : {&operands.inputs, &operands.outputs}) {
      for (TensorId id : *list) tensor_width = std::max(tensor_width, vitro::describe(id, tensors).size());
    }
  }
  std::string text = "step  " + padded("operation", width) + "         work  does    " + padded("tensor", tensor_width) +
                     "       size    place\n";
  double total = 0;
  for (std::size_t i = 0; i < graph_->ends.size(); ++i) {
    text += step_rows(*this, tensors, i, graph_->step(i), width, tensor_width);
    total += flops_of(graph_->step(i), tensors);
  }
  text += std::to_string(steps_.size()) + " steps that run, " + flops_text(total) + "; backend " + backend_;
  if (kernels_ != nullptr) text += ", " + std::string(kernels_->name) + " kernels, " + std::to_string(threads_) + " thread(s)";
  text += "\narena " + exact_bytes_text(arena_bytes_) + " (lower bound " + std::to_string(arena_lower_bound_) +
          "), constants " + exact_bytes_text(constant_bytes_) + ", outputs " + exact_bytes_text(output_bytes()) + "\nscratch " +
          exact_bytes_text(scratch_.shared_bytes) + " shared and " + exact_bytes_text(scratch_.thread_bytes) +
          " for each thread\n";
  return text;
}

std::string Plan::graphviz() const {
  const TensorTable& tensors = graph_->tensors;
  std::string text = "digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  const auto vertex = [](TensorId id) { return "t" + std::to_string(static_cast<std::uint32_t>(id)); };
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    text +=
        "  " + vertex(ports_[i].tensor) + " [shape=ellipse, label=\"" + port_text(*this, tensors, ports_[i].tensor) + "\"];\n";
  }
  std::vector<std::string> written(tensors.size());  // the vertex that a tensor comes from
  for (std::size_t i = 0; i < graph_->ends.size(); ++i) {
    const std::span<const Node> step = graph_->step(i);
    const Operands operands = operands_of(step, tensors);
    const std::string vertex_of_step = "s" + std::to_string(i);
    text += "  " + vertex_of_step + " [label=\"" + std::to_string(i) + ": " + operation(step) + "\"];\n";
    for (TensorId id : operands.inputs) {
      const std::string& from = written[index_of(id)];
      if (from.empty() && tensors[id].place.base == kConstants) continue;
      text += "  " + (from.empty() ? vertex(id) : from) + " -> " + vertex_of_step + " [label=\"" +
              vitro::describe(id, tensors) + "\"];\n";
    }
    for (TensorId id : operands.outputs) {
      written[index_of(id)] = vertex_of_step;
      if (tensors[id].place.base >= kFirstPort) text += "  " + vertex_of_step + " -> " + vertex(id) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace vitro

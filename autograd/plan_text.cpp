// SPDX-License-Identifier: Apache-2.0
// A plan in words: the table of its steps, and the same as a graph.
#include "graph.hpp"
#include "plan.hpp"

#include <algorithm>

namespace vitro {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string aligned_right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string operation(std::span<const Node> step) {
  std::string text;
  for (std::size_t i = 0; i < step.size(); ++i) {
    // Several updates are one operation, repeated.
    if (i > 0 && step[i].index() == step[i - 1].index()) continue;
    const auto same = std::count_if(step.begin(), step.end(), [&](const Node& n) { return n.index() == step[i].index(); });
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

std::size_t bytes_of(const TensorInfo& info) { return static_cast<std::size_t>(info.shape.elements()) * size_of(info.type); }

std::string place_text(const Plan& plan, const TensorInfo& info) {
  if (info.place.base == Plan::kArena) return "@" + std::to_string(info.place.offset);
  if (info.place.base == Plan::kConstants)
    return std::string("constant ") + std::to_string(info.place.offset) + (info.packed ? ", packed" : "");
  constexpr const char* kKinds[] = {"input", "parameter", "output"};
  return kKinds[static_cast<std::size_t>(plan.ports()[info.place.base - Plan::kFirstPort].kind)];
}

std::string tensor_text(const Plan& plan, const TensorTable& tensors, TensorId id) {
  const TensorInfo& info = tensors[id];
  return describe(id, tensors) + " (" + place_text(plan, info) + ", " + std::to_string(bytes_of(info)) + " B)";
}

std::string list_text(const Plan& plan, const TensorTable& tensors, const std::vector<TensorId>& list) {
  std::string text;
  for (TensorId id : list) text += (text.empty() ? "" : ", ") + tensor_text(plan, tensors, id);
  return text.empty() ? "nothing" : text;
}

double flops_of(std::span<const Node> step, const TensorTable& tensors) {
  double sum = 0;
  for (const Node& node : step) sum += flops(node, tensors);
  return sum;
}

std::string whole(double number) { return std::to_string(static_cast<long long>(number)); }

}  // namespace

std::string Plan::describe() const {
  const TensorTable& tensors = graph_->tensors;
  std::size_t width = 9;
  for (std::size_t i = 0; i < graph_->ends.size(); ++i) width = std::max(width, operation(graph_->step(i)).size());
  std::string text = "step  " + padded("operation", width) + "         flops  writes <- reads\n";
  double total = 0;
  for (std::size_t i = 0; i < graph_->ends.size(); ++i) {
    const std::span<const Node> step = graph_->step(i);
    const Operands operands = operands_of(step, tensors);
    const double count = flops_of(step, tensors);
    total += count;
    text += aligned_right(std::to_string(i), 4) + "  " + padded(operation(step), width) + "  " +
            aligned_right(whole(count), 12) + "  " + list_text(*this, tensors, operands.outputs) + " <- " +
            list_text(*this, tensors, operands.inputs) + "\n";
  }
  text += "backend " + backend_;
  if (kernels_ != nullptr) text += ", " + std::string(kernels_->name) + " kernels, " + std::to_string(threads_) + " thread(s)";
  text += "; " + std::to_string(steps_.size()) + " steps that run, " + whole(total) + " flops\n";
  text += "arena " + std::to_string(arena_bytes_) + " bytes (lower bound " + std::to_string(arena_lower_bound_) +
          "), constants " + std::to_string(constant_bytes_) + ", outputs " + std::to_string(output_bytes()) + ", scratch " +
          std::to_string(scratch_.shared_bytes) + " shared and " + std::to_string(scratch_.thread_bytes) + " for each thread\n";
  return text;
}

std::string Plan::graphviz() const {
  const TensorTable& tensors = graph_->tensors;
  std::string text = "digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  const auto vertex = [](TensorId id) { return "t" + std::to_string(static_cast<std::uint32_t>(id)); };
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    text += "  " + vertex(ports_[i].tensor) + " [shape=ellipse, label=\"" + tensor_text(*this, tensors, ports_[i].tensor) +
            "\"];\n";
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

// SPDX-License-Identifier: Apache-2.0
// Capture: from a tape's list of nodes to bound steps.
#include "plan.hpp"

#include "storage_plan.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace vitro {

// One capture, pass by pass.
class Capture {
 public:
  Capture(const Tape& tape, std::span<const Var> outputs, const CaptureOptions& options)
      : tape_(tape), backend_(tape.backend()), options_(options), graph_(std::make_unique<Graph>()), plan_(new Plan) {
    graph_->nodes = tape.nodes();
    graph_->tensors = tape.tensors();
    for (const Var output : outputs) graph_->outputs.push_back(output.id);
  }

  Result<std::shared_ptr<const Plan>> run() {
    if (Status status = check_graph(*graph_); !status) return std::move(status).error();
    if (Status status = remove_dead_nodes(*graph_); !status) return std::move(status).error();
    if (Status status = check_inputs(); !status) return std::move(status).error();
    if (Status status = check_memory(); !status) return std::move(status).error();
    if (options_.fuse) {
      move_relu_grads(*graph_);
      recompute_gradients(*graph_, backend_);
    }
    cut_into_steps(*graph_, backend_, options_.fuse);
    storage_ = plan_storage(*graph_, options_.reuse_memory);
    place_constants();
    place_ports();
    for (std::size_t i = 0; i < graph_->tensors.size(); ++i) {
      const std::uint32_t storage = storage_.storage_of[i];
      graph_->tensors[TensorId(i)].place = storage == kNoNode ? kNowhere : storage_.storages[storage].place;
    }
    if (Status status = bind(); !status) return std::move(status).error();
    fill_in();
    return std::shared_ptr<const Plan>(std::move(plan_));
  }

 private:
  Status check_inputs() const {
    for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
      for (TensorId id : inputs_of(graph_->nodes[i])) {
        if (tape_.is_copy(id)) {
          const Node& node = graph_->nodes[i];  // by its result: dead nodes are gone, and its number is another one
          return Error(ErrorCode::invalid_argument,
                       "capture: the input " + describe(id, graph_->tensors) + " of the " + name(node) + " that computes " +
                           describe(*outputs_of(node).begin(), graph_->tensors) +
                           " was given with strides of its own, so that the tape copied it; a plan reads its inputs where they "
                           "are: give a dense view");
        }
      }
    }
    return {};
  }

  // What is written must not lie under another name as well: steps are ordered by the names that they read and write.
  Status check_memory() const {
    struct Extent {
      const std::byte *begin, *end;
      TensorId id;
      bool written;
    };
    std::vector<bool> named(graph_->tensors.size(), false), written(graph_->tensors.size(), false);
    for (const Node& node : graph_->nodes) {
      for (TensorId id : inputs_of(node)) named[index_of(id)] = true;
      for (TensorId id : outputs_of(node)) named[index_of(id)] = written[index_of(id)] = true;
    }
    for (TensorId id : graph_->outputs) named[index_of(id)] = true;
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < named.size(); ++i) {
      const TensorInfo& info = graph_->tensors[TensorId(i)];
      const std::byte* const begin = named[i] && info.role != Role::computed ? tape_.memory_of(TensorId(i)) : nullptr;
      const std::size_t bytes = bytes_of(info.shape, info.type);
      if (begin != nullptr && bytes > 0) extents.push_back({begin, begin + bytes, TensorId(i), written[i]});
    }
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return std::less<>()(a.begin, b.begin); });
    // Of those that begin before: the one that reaches furthest, and the one among those that are written.
    const Extent *any = nullptr, *changing = nullptr;
    for (const Extent& e : extents) {
      const Extent* const other = e.written ? any : changing;
      if (other != nullptr && std::less<>()(e.begin, other->end)) {
        return Error(ErrorCode::invalid_argument,
                     "capture: " + describe(e.id, graph_->tensors) + " and " + describe(other->id, graph_->tensors) +
                         " lie in the same memory, and an update writes there; in a plan it must have one name");
      }
      if (any == nullptr || std::less<>()(any->end, e.end)) any = &e;
      if (e.written && (changing == nullptr || std::less<>()(changing->end, e.end))) changing = &e;
    }
    return {};
  }

  // Constants get places behind one another; those that the backend wants packed are packed.
  void place_constants() {
    std::vector<std::uint32_t> readers(graph_->tensors.size(), 0);
    for (const Node& node : graph_->nodes) {
      for (TensorId id : inputs_of(node)) ++readers[index_of(id)];
    }
    for (TensorId id : graph_->outputs) ++readers[index_of(id)];
    std::vector<std::optional<Packing>> packings(storage_.storages.size());
    for (const Node& node : graph_->nodes) {
      const std::optional<Packing> packing = backend_.packing(node, graph_->tensors);
      if (!packing || graph_->tensors[packing->operand].role != Role::constant || readers[index_of(packing->operand)] != 1)
        continue;
      graph_->tensors[packing->operand].packed = true;
      packings[storage_.storage_of[index_of(packing->operand)]] = packing;
    }
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < storage_.storages.size(); ++i) {
      Storage& storage = storage_.storages[i];
      if (storage.where != Storage::Where::constants) continue;
      if (packings[i]) storage.bytes = packings[i]->bytes;
      storage.place = {bytes, Plan::kConstants};
      bytes += aligned_up(storage.bytes);
    }
    plan_->constant_bytes_ = bytes;
    plan_->constants_ = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(bytes));
    for (std::size_t i = 0; i < storage_.storages.size(); ++i) {
      if (storage_.storages[i].where == Storage::Where::constants) fill_constant(storage_.storages[i], packings[i]);
    }
  }

  void fill_constant(const Storage& storage, const std::optional<Packing>& packing) const {
    std::byte* const from = tape_.memory_of(storage.tensor);
    std::byte* const to = plan_->constants_.get() + storage.place.offset;
    if (storage.bytes == 0 || from == nullptr) return;
    if (!packing) {
      std::memcpy(to, from, storage.bytes);
      return;
    }
    Context* const context = backend_.context();
    if (context != nullptr) context->reserve_scratch(packing->pack.scratch);
    std::byte* const bases[] = {from, to};
    packing->pack.step.run({bases, context});
  }

  // A base for each tensor outside: inputs and parameters in the order in which steps name them, then outputs.
  void place_ports() {
    for (Storage& storage : storage_.storages) {
      if (storage.where != Storage::Where::port || graph_->is_computed(storage.tensor)) continue;
      const TensorInfo& info = graph_->tensors[storage.tensor];
      add_port(storage.tensor, info.role == Role::parameter ? PortKind::parameter : PortKind::input, storage);
    }
    for (TensorId id : graph_->outputs) {
      Storage& storage = storage_.storages[storage_.storage_of[index_of(id)]];
      if (!is_nowhere(storage.place) && find_port(id) == nullptr) {  // lies where another port or a constant lies
        const TensorInfo& info = graph_->tensors[id];
        plan_->ports_.push_back({id, PortKind::output, info.type, info.shape, storage.place});
      } else if (is_nowhere(storage.place)) {
        add_port(id, PortKind::output, storage);
      }
    }
  }

  void add_port(TensorId id, PortKind kind, Storage& storage) {
    const TensorInfo& info = graph_->tensors[id];
    storage.place = {0, static_cast<std::uint32_t>(Plan::kFirstPort + plan_->ports_.size())};
    plan_->ports_.push_back({id, kind, info.type, info.shape, storage.place, tape_.memory_of(id)});
  }

  const Port* find_port(TensorId id) const {
    const auto it = std::find_if(plan_->ports_.begin(), plan_->ports_.end(), [&](const Port& p) { return p.tensor == id; });
    return it == plan_->ports_.end() ? nullptr : &*it;
  }

  Status bind() {
    for (std::size_t i = 0; i < graph_->ends.size(); ++i) {
      const std::span<const Node> nodes = graph_->step(i);
      if (std::holds_alternative<Reshape>(nodes.front())) continue;
      Result<BoundStep> bound = backend_.try_bind(nodes, graph_->tensors);
      if (!bound) return std::move(bound).error();
      plan_->steps_.push_back(bound.value().step);
      plan_->scratch_.shared_bytes = std::max(plan_->scratch_.shared_bytes, bound.value().scratch.shared_bytes);
      plan_->scratch_.thread_bytes = std::max(plan_->scratch_.thread_bytes, bound.value().scratch.thread_bytes);
    }
    return {};
  }

  void fill_in() {
    plan_->backend_ = backend_.name();
    if (const Context* const context = backend_.context()) {
      plan_->kernels_ = &context->kernels();
      plan_->threads_ = context->threads();
    }
    plan_->arena_bytes_ = storage_.arena.bytes;
    plan_->arena_lower_bound_ = storage_.arena.lower_bound;
    for (const Storage& storage : storage_.storages) {
      if (storage.where != Storage::Where::arena) continue;
      plan_->arena_map_.push_back(
          {storage.tensor, static_cast<std::size_t>(storage.place.offset), storage.bytes, storage.first, storage.last});
    }
    plan_->graph_ = std::move(graph_);
  }

  const Tape& tape_;
  Backend& backend_;
  CaptureOptions options_;
  std::unique_ptr<Graph> graph_;
  StoragePlan storage_;
  std::unique_ptr<Plan> plan_;
};

Plan::Plan() = default;
Plan::~Plan() = default;

Result<std::shared_ptr<const Plan>> Plan::try_capture(const Tape& tape, std::span<const Var> outputs,
                                                      const CaptureOptions& options) {
  for (const Var output : outputs) {
    if (output.tape != &tape) {
      return Error(ErrorCode::invalid_argument, "capture: the output " + to_string(output.id) + " belongs to another tape");
    }
  }
  return Capture(tape, outputs, options).run();
}

Status Plan::check(const Context& context) const {
  if (kernels_ == nullptr || (&context.kernels() == kernels_ && context.threads() == threads_)) return {};
  return Error(ErrorCode::invalid_argument, "plan: it was captured for the " + std::string(kernels_->name) + " kernels and " +
                                                std::to_string(threads_) + " thread(s), and cannot run with a context of the " +
                                                context.kernels().name + " kernels and " + std::to_string(context.threads()));
}

const Port* Plan::port(Var x) const noexcept {
  const auto it = std::find_if(ports_.begin(), ports_.end(), [&](const Port& p) { return p.tensor == x.id; });
  return it == ports_.end() ? nullptr : &*it;
}

std::size_t Plan::output_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Port& port : ports_) {
    if (port.kind != PortKind::output) continue;
    bytes += aligned_up(bytes_of(port.shape, port.type));
  }
  return bytes;
}

}  // namespace vitro

// SPDX-License-Identifier: Apache-2.0
// PlanCache: compiled plans by the shapes that they were made for.
#pragma once

#include "tensor_table.hpp"

#include <list>
#include <string>
#include <vector>

namespace vitro {

// What a plan is compiled for: the mode ("train", "infer", ...), and shape and type of whatever may differ from run to run.
class Signature {
 public:
  explicit Signature(std::string mode) : mode_(std::move(mode)) {}
  Signature& add(const Shape& shape, DType type = DType::f32) {
    tensors_.push_back({shape, type});
    return *this;
  }
  friend bool operator==(const Signature&, const Signature&) = default;
  // "train u8[64, 28, 28, 1] i32[64]"
  std::string text() const;

 private:
  struct Entry {
    Shape shape;
    DType type;
    friend bool operator==(const Entry&, const Entry&) noexcept = default;
  };
  std::string mode_;
  std::vector<Entry> tensors_;
};

enum class PlanState : unsigned char {
  never_captured,  // or no longer kept
  pending,         // being captured
  ready,
};

// Keeps up to `capacity` values by signature, each a plan with whatever belongs to it; the one that was not asked for longest
// makes room for a new one. Serves one thread at a time. Finding a value allocates nothing.
template <class Value>
class PlanCache {
 public:
  // Fails with invalid_argument for a capacity of 0.
  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) fail(ErrorCode::invalid_argument, "PlanCache: the capacity is 0; it must be at least 1");
  }

  PlanState state(const Signature& signature) const noexcept {
    for (const Pending* p = pending_; p != nullptr; p = p->outer) {
      if (p->signature == signature) return PlanState::pending;
    }
    for (const Entry& entry : entries_) {
      if (entry.signature == signature) return PlanState::ready;
    }
    return PlanState::never_captured;
  }
  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t capacity() const noexcept { return capacity_; }

  // The value under the signature. Where there is none, `make()`, which returns Result<Value>, is called, and what it makes is
  // kept; an error leaves the signature never captured and the other values as they are. Asking for a signature that is
  // pending, from inside its own make(), is an error. The value stays where it is until it makes room, which only a call for
  // another signature can cause.
  template <class Make>
  Result<Value*> try_get(const Signature& signature, const Make& make) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->signature != signature) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return &entries_.front().value;
    }
    if (state(signature) == PlanState::pending) {
      return Error(ErrorCode::invalid_argument,
                   "PlanCache: the plan for " + signature.text() + " was asked for while it is captured");
    }
    Result<Value> value = make_pending(signature, make);
    if (!value) return std::move(value).error();
    if (entries_.size() == capacity_) entries_.pop_back();
    entries_.push_front({signature, std::move(value).value()});
    return &entries_.front().value;
  }

  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    Signature signature;
    Value value;
  };
  // A capture that is under way, and the one inside of which it was asked for. Ends however make() ends.
  struct Pending {
    Pending(PlanCache& owner, const Signature& s) : cache(owner), signature(s), outer(owner.pending_) { cache.pending_ = this; }
    ~Pending() { cache.pending_ = outer; }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

    PlanCache& cache;
    const Signature& signature;
    const Pending* outer;
  };

  template <class Make>
  Result<Value> make_pending(const Signature& signature, const Make& make) {
    const Pending pending(*this, signature);
    return make();
  }

  std::list<Entry> entries_;  // the last one asked for first
  std::size_t capacity_;
  const Pending* pending_ = nullptr;
};

}  // namespace vitro

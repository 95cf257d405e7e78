// SPDX-License-Identifier: Apache-2.0
// The few functions of ONNX Runtime's C API that the comparison calls.
//
// The wheel has the library and no header. The API is a table of function pointers to which each version only appends: the
// library's own sources assert that version 1 ends with the pointer 101 for ever (onnxruntime_c_api.cc), and all that is called
// here belongs to it. Numbers and signatures: onnxruntime_c_api.h of ONNX Runtime 1.0 to 1.32. A wrong one would not go
// unnoticed: results are compared with Vitro's.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct OrtStatus;
struct OrtEnv;
struct OrtSessionOptions;
struct OrtSession;
struct OrtMemoryInfo;
struct OrtValue;

struct OrtApiBase {
  const void* const* (*api)(std::uint32_t version);
  const char* (*version_string)();
};

const OrtApiBase* OrtGetApiBase();
}

namespace vitro_bench {

// One entry of the table.
template <int Number, class Function>
struct OrtFunction {
  template <class... Args>
  auto operator()(Args... args) const {
    static const auto function = reinterpret_cast<Function*>(const_cast<void*>(OrtGetApiBase()->api(1)[Number]));
    return function(args...);
  }
};

inline constexpr OrtFunction<2, const char*(const OrtStatus*)> ort_get_error_message;
inline constexpr OrtFunction<3, OrtStatus*(int severity, const char* name, OrtEnv**)> ort_create_env;
inline constexpr OrtFunction<8, OrtStatus*(const OrtEnv*, const void* model, std::size_t bytes, const OrtSessionOptions*,
                                           OrtSession**)>
    ort_create_session_from_array;
inline constexpr OrtFunction<9, OrtStatus*(OrtSession*, const void* run_options, const char* const* input_names,
                                           const OrtValue* const* inputs, std::size_t input_count,
                                           const char* const* output_names, std::size_t output_count, OrtValue** outputs)>
    ort_run;
inline constexpr OrtFunction<10, OrtStatus*(OrtSessionOptions**)> ort_create_session_options;
inline constexpr OrtFunction<23, OrtStatus*(OrtSessionOptions*, int level)> ort_set_graph_optimization_level;
inline constexpr OrtFunction<24, OrtStatus*(OrtSessionOptions*, int threads)> ort_set_intra_op_threads;
inline constexpr OrtFunction<49, OrtStatus*(const OrtMemoryInfo*, void* data, std::size_t bytes, const std::int64_t* dims,
                                            std::size_t rank, int type, OrtValue**)>
    ort_create_tensor_with_data;
inline constexpr OrtFunction<69, OrtStatus*(int allocator, int memory, OrtMemoryInfo**)> ort_create_cpu_memory_info;
inline constexpr OrtFunction<93, void(OrtStatus*)> ort_release_status;
inline constexpr OrtFunction<94, void(OrtMemoryInfo*)> ort_release_memory_info;
inline constexpr OrtFunction<95, void(OrtSession*)> ort_release_session;
inline constexpr OrtFunction<96, void(OrtValue*)> ort_release_value;
inline constexpr OrtFunction<100, void(OrtSessionOptions*)> ort_release_session_options;

inline constexpr int kOrtWarning = 2, kOrtEnableAll = 99, kOrtArenaAllocator = 1, kOrtDefaultMemory = 0, kOrtFloat = 1;

}  // namespace vitro_bench

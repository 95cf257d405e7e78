// SPDX-License-Identifier: Apache-2.0
// Loads the modules of the peers.
//
// RTLD_LOCAL keeps a module's symbols from all others, and RTLD_DEEPBIND makes it prefer those of the libraries it was linked
// with: MKL, OpenBLAS and LibTorch all define cblas_sgemm and would take each other's otherwise. Whether a peer is as fast here
// as alone, `peers_bench --peers NAME` tells: it loads no other module.
#include "load.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <exception>
#include <filesystem>

namespace vitro_bench {
namespace {

constexpr const char* kModules[] = {"openblas", "mkl", "onednn", "opencv", "libtorch", "onnxruntime", "ncnn"};

}  // namespace

LoadedPeers load_peers(const std::string& folder, const std::vector<std::string>& only) {
  LoadedPeers loaded;
  const std::filesystem::path place = std::filesystem::read_symlink("/proc/self/exe").parent_path() / folder;
  for (const std::string name : kModules) {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    const std::filesystem::path path = place / ("peer_" + name + ".so");
    if (!std::filesystem::exists(path)) {
      loaded.missing.push_back(name + ": was not built, as CMake did not find the library");
      continue;
    }
    // Never closed: the libraries have threads.
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void* const entry = handle == nullptr ? nullptr : dlsym(handle, "vitro_bench_peer");
    if (entry == nullptr) {
      const char* const why = dlerror();
      loaded.missing.push_back(name + ": " + (why == nullptr ? "no reason given" : why));
      continue;
    }
    try {
      loaded.peers.push_back(reinterpret_cast<Peer* (*)()>(entry)());
    } catch (const std::exception& error) {
      loaded.missing.push_back(name + ": " + error.what());
    }
  }
  return loaded;
}

}  // namespace vitro_bench

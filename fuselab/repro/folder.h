// The debug folder (spec: autofuse §4): everything about one compiled graph as files, each kernel with its script.
#pragma once
#include <functional>
#include <string>

#include "fuselab/repro/spec.h"

namespace fuselab::repro {

/// What only the front end knows.
struct FolderRequest {
  std::string root;                ///< the debug folder; one run_<time>-pid_<pid> per process below it
  std::string kind = "inference";  ///< or "forward", "backward"
  int number = 0;                  ///< of the model in this process
  std::string graph_text;          ///< the front end's graph; empty: the graph's text
  std::string output_code;         ///< a Python program that runs the compiled graph; empty: the steps in words, as .txt
  Symbols hints;                   ///< sizes to make the scripts' inputs with
  /// Completes a kernel's spec (precision context, options, torch's version). May be empty: scripts then only profile.
  std::function<void(BenchmarkSpec&, const Graph& fragment)> complete;
};

/// Writes the folder and returns its path (`.../model__0_inference_0.0`). Nothing that exists is overwritten. Throws
/// Error("repro.folder") when a file cannot be written.
std::string write_debug_folder(const runtime::CompiledGraph& graph, const FolderRequest& request);

/// What is left when a compilation threw: the folder, and the kernel that does not compile (empty: none of them alone).
struct Failure {
  std::string folder, kernel;
};
/// The folder of a graph that could not be compiled, with what could be made: graph.txt, and of each kernel fragment.graph,
/// kernel.ir, kernel.cpp, artifacts.json, and error.txt where it does not compile. Throws what simplifying and fusing throw,
/// Error("repro.folder").
Failure write_failed_folder(const Graph& graph, const runtime::Options& options, const FolderRequest& request);

/// Where this process's files go: <root>/run_<time>-pid_<pid>, the same for every call with this root.
std::string run_folder(const std::string& root);

/// The steps of a compiled graph, fragments with the names of the front end's nodes, reasons, and the IR after each pass.
std::string post_fusion_text(const runtime::CompiledGraph& graph);
/// A row per block: kind, operators, bytes read and written, and by the same operators one by one.
std::string summary_csv(const runtime::CompiledGraph& graph, const Symbols& hints);

}  // namespace fuselab::repro

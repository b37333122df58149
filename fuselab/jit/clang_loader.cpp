#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <cstring>

#include "fuselab/core/error.h"
#include "fuselab/jit/loader.h"

namespace fuselab::jit {
namespace {

/// Finds what kernels may call. Not the whole process: a kernel text must not reach what happens to be loaded.
class Outside : public llvm::orc::DefinitionGenerator {
 public:
  llvm::Error tryToGenerate(llvm::orc::LookupState&, llvm::orc::LookupKind, llvm::orc::JITDylib& into,
                            llvm::orc::JITDylibLookupFlags, const llvm::orc::SymbolLookupSet& wanted) override {
    llvm::orc::SymbolMap found;
    for (const auto& [symbol, flags] : wanted) {
      if (void* address = find((*symbol).str())) {
        found[symbol] = {llvm::orc::ExecutorAddr::fromPtr(address),
                         llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
      }
    }
    return found.empty() ? llvm::Error::success() : into.define(llvm::orc::absoluteSymbols(std::move(found)));
  }

 private:
  static void* find(const std::string& name) {
    static void* const math = dlopen("libm.so.6", RTLD_LAZY);
    static void* const gcc = dlopen("libgcc_s.so.1", RTLD_LAZY);
    static void* const sleef = dlopen("libsleef.so.3", RTLD_LAZY);
    if (name == "memcpy") return reinterpret_cast<void*>(&std::memcpy);
    if (name == "memmove") return reinterpret_cast<void*>(&std::memmove);
    if (name == "memset") return reinterpret_cast<void*>(&std::memset);
    if (name.starts_with("Sleef_")) return sleef == nullptr ? nullptr : dlsym(sleef, name.c_str());
    if (name.starts_with("__")) return gcc == nullptr ? nullptr : dlsym(gcc, name.c_str());  // __extendhfsf2, __truncsfhf2, ...
    static const char* const kMath[] = {"fma",   "fmaf",  "fmod",      "fmodf",      "floor",     "floorf",    "ceil",
                                        "ceilf", "trunc", "truncf",    "rint",       "rintf",     "round",     "roundf",
                                        "sqrt",  "sqrtf", "nearbyint", "nearbyintf", "roundeven", "roundevenf"};
    for (const char* known : kMath) {
      if (name == known) return math == nullptr ? nullptr : dlsym(math, name.c_str());
    }
    return nullptr;
  }
};

/// One ORC session for all kernels of the process.
class Session {
 public:
  static Session& get() {
    static Session* session = new Session;  // never destroyed: code may run while the process ends
    return *session;
  }

  llvm::orc::ExecutionSession& session() { return session_; }
  llvm::orc::ObjectLinkingLayer& layer() { return layer_; }
  llvm::orc::JITDylib& outside() { return outside_; }

  llvm::orc::JITDylib& new_dylib() {
    static std::atomic<std::uint64_t> counter{0};
    auto& dylib = session_.createBareJITDylib("kernel" + std::to_string(counter.fetch_add(1)));
    dylib.addToLinkOrder(outside_);
    return dylib;
  }

 private:
  static std::unique_ptr<llvm::orc::ExecutorProcessControl> control() {
    auto made = llvm::orc::SelfExecutorProcessControl::Create();
    if (!made) fail("jit.link", "the loader cannot start: {}", llvm::toString(made.takeError()));
    return std::move(*made);
  }
  Session() : session_(control()), layer_(session_), outside_(session_.createBareJITDylib("outside")) {
    outside_.addGenerator(std::make_unique<Outside>());
    session_.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });  // lookups return them too
  }

  llvm::orc::ExecutionSession session_;
  llvm::orc::ObjectLinkingLayer layer_;
  llvm::orc::JITDylib& outside_;
};

class Loaded : public Code {
 public:
  explicit Loaded(llvm::orc::JITDylib& dylib) : dylib_(dylib) {}
  ~Loaded() override { llvm::consumeError(Session::get().session().removeJITDylib(dylib_)); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  void* address(std::size_t index) const override { return addresses_[index]; }

  llvm::orc::JITDylib& dylib_;
  std::vector<void*> addresses_;
};

}  // namespace

std::shared_ptr<Code> load_object(const std::vector<char>& object, const std::string& name,
                                  const std::vector<std::string>& symbols) {
  Session& s = Session::get();
  auto loaded = std::make_shared<Loaded>(s.new_dylib());
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), name);
  if (llvm::Error error = s.layer().add(loaded->dylib_, std::move(buffer))) {
    fail("jit.link", "the object code of {} cannot be loaded: {}", name, llvm::toString(std::move(error)));
  }
  llvm::orc::SymbolLookupSet wanted;
  for (const std::string& symbol : symbols) wanted.add(s.session().intern(symbol));
  auto found = s.session().lookup({{&loaded->dylib_, llvm::orc::JITDylibLookupFlags::MatchAllSymbols}}, std::move(wanted));
  if (!found) fail("jit.link", "{} cannot be linked: {}", name, llvm::toString(found.takeError()));
  for (const std::string& symbol : symbols) {
    loaded->addresses_.push_back((*found)[s.session().intern(symbol)].getAddress().toPtr<void*>());
  }
  return loaded;
}

}  // namespace fuselab::jit

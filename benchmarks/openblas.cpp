#include <cblas.h>

#include <memory>

#include "benchmarks/implementations.hpp"

namespace quantrain::benchmarks {
namespace {

Call gemm(const Problem& p) {
  struct Operands {
    Buffer<float> a, b, c;
  };
  auto o = std::make_shared<Operands>(
      Operands{filled<float>(p.m * p.k), filled<float>(p.k * p.n), Buffer<float>(p.m * p.n)});
  return [o, p] {
    const auto int_of = [](int64_t i) { return static_cast<blasint>(i); };
    cblas_sgemm(CblasRowMajor,
                p.transpose_a ? CblasTrans : CblasNoTrans,
                p.transpose_b ? CblasTrans : CblasNoTrans,
                int_of(p.m),
                int_of(p.n),
                int_of(p.k),
                1.0f,
                o->a.data(),
                int_of(p.transpose_a ? p.m : p.k),
                o->b.data(),
                int_of(p.transpose_b ? p.k : p.n),
                0.0f,
                o->c.data(),
                int_of(p.n));
  };
}

}  // namespace

Implementation openblas_kernels() {
  return {"openblas", [](int threads) { openblas_set_num_threads(threads); }, {{"gemm_f32", gemm}}};
}

}  // namespace quantrain::benchmarks

// Compares our kernels with those of OpenBLAS and oneDNN, with our reference loops and with the
// machine's peak rate. Benchmarks are named family/implementation/shape/threads:N. items_per_second
// counts operations, two for each multiply-add, and one for each element of a batch norm.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

#include "benchmarks/implementations.hpp"
#include "benchmarks/networks.hpp"
#include "benchmarks/results.hpp"

namespace quantrain::benchmarks {

std::string Problem::name() const {
  const auto text = [](int64_t number) { return std::to_string(number); };
  if (is_gemm()) {
    std::string name = text(m) + "x" + text(k) + "x" + text(n);
    if (transpose_a || transpose_b) {
      name += std::string("_") + (transpose_a ? "t" : "n") + (transpose_b ? "t" : "n");
    }
    return name;
  }
  const std::string images =
      text(conv.n) + "x" + text(conv.h) + "x" + text(conv.w) + "x" + text(conv.c);
  if (normalizes) return images;
  return images + "_" + text(conv.o) + "x" + text(conv.kh) + "x" + text(conv.kw) + "_s" +
         text(conv.stride_h) + "_p" + text(conv.pad_h) +
         (conv.groups > 1 ? "_g" + text(conv.groups) : "");
}

namespace {

constexpr int64_t kBatches[] = {1, 64, 256};
constexpr int64_t kTrainingBatch = 64;
/// The reference loops skip problems with more operations than this, because one call would take
/// too long.
constexpr int64_t kReferenceOperations = 50'000'000;

struct FamilyProblem {
  std::string family;
  Problem problem;
};

/// The problems of each family, without duplicates.
class Problems {
 public:
  void add(const std::string& family, const Problem& problem) {
    if (seen_.insert(family + problem.name()).second) problems_.push_back({family, problem});
  }
  const std::vector<FamilyProblem>& all() const { return problems_; }

 private:
  std::set<std::string> seen_;
  std::vector<FamilyProblem> problems_;
};

void add_gemm(Problems& problems, int64_t m, int64_t k, int64_t n) {
  for (const char* family : {"gemm_f32", "gemm_f32_packed", "gemm_u8s8", "gemm_u8s8_requantize"}) {
    problems.add(family, Problem::gemm(m, k, n));
  }
}

void add_linear(Problems& problems, const Layer& layer, int64_t batch) {
  const int64_t in = layer.shape.c;
  const int64_t out = layer.shape.o;
  add_gemm(problems, batch, in, out);
  problems.add("gemm_f32", Problem::gemm(batch, in, out, false, true));
  if (batch != kTrainingBatch) return;
  problems.add("gemm_f32", Problem::gemm(out, batch, in, true, false));
  if (!layer.first) problems.add("gemm_f32", Problem::gemm(batch, out, in));
}

constexpr const char* kDepthwiseFamilies[] = {"depthwise_f32_forward",
                                              "depthwise_f32_backward_data",
                                              "depthwise_f32_backward_weights",
                                              "depthwise_u8s8_requantize"};

void add_convolution(Problems& problems, const Layer& layer) {
  const Problem problem = Problem::convolution(layer.shape);
  if (is_depthwise(layer.shape)) {
    for (const char* const kernel : kDepthwiseFamilies) problems.add(kernel, problem);
    return;
  }
  problems.add("conv_f32_forward", problem);
  if (!layer.first) problems.add("conv_f32_backward_data", problem);
  problems.add("conv_f32_backward_weights", problem);
  problems.add("conv_u8s8_requantize", problem);
}

/// Adds depthwise layers like those of keyword spotting (DS-CNN) and of MobileNet with widths 1 and
/// 0.25, each with strides 1 and 2, and depthwise layers with other kernel sizes.
void add_depthwise(Problems& problems) {
  struct Images {
    int64_t n, h, w, c, kh, kw;
  };
  for (const Images& x : {Images{64, 25, 5, 64, 3, 3},
                          Images{1, 25, 5, 64, 3, 3},
                          Images{4, 112, 112, 32, 3, 3},
                          Images{16, 14, 14, 512, 3, 3},
                          Images{64, 48, 48, 8, 3, 3},
                          Images{64, 24, 24, 16, 3, 3},
                          Images{16, 28, 28, 40, 5, 5},
                          Images{64, 49, 1, 64, 9, 1}}) {
    for (const int64_t stride : {1, 2}) {
      const Problem problem = Problem::convolution({.n = x.n,
                                                    .h = x.h,
                                                    .w = x.w,
                                                    .c = x.c,
                                                    .o = x.c,
                                                    .kh = x.kh,
                                                    .kw = x.kw,
                                                    .stride_h = stride,
                                                    .stride_w = x.kw > 1 ? stride : 1,
                                                    .pad_h = x.kh / 2,
                                                    .pad_w = x.kw / 2,
                                                    .groups = x.c});
      for (const char* const kernel : kDepthwiseFamilies) problems.add(kernel, problem);
    }
  }
}

/// Adds layers with fewer bits.
void add_few_bits(Problems& problems) {
  for (const int64_t rows : {1, 4, 16, 64}) {
    for (const char* const family : {"gemm_u8s4_requantize", "gemm_u8s2_requantize"}) {
      problems.add(family, Problem::gemm(rows, 2048, 2048));
      problems.add(family, Problem::gemm(rows, 1024, 1024));
    }
    problems.add("gemm_u1s1_requantize", Problem::gemm(rows, 1024, 1024));
  }
  for (const int64_t c : {16, 32, 64, 128}) {
    const int64_t size = 512 / c;
    const Problem problem = Problem::convolution(
        {.h = size, .w = size, .c = c, .o = c, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1});
    problems.add("conv_u8s4_requantize", problem);
    problems.add("conv_u1s1_requantize", problem);
  }
  const Problem large = Problem::convolution(
      {.h = 14, .w = 14, .c = 128, .o = 128, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1});
  problems.add("conv_u1s1_requantize", large);
}

/// Adds batch norms of the results of convolutions: those of keyword spotting (DS-CNN), image
/// classification (ResNet-8), MobileNet with width 0.25 and the examples' batch norm network. Their
/// images take 0.8 to 9.4 MB.
void add_batch_norms(Problems& problems) {
  constexpr int64_t kImages[][3] = {{25, 5, 64},
                                    {32, 32, 16},
                                    {16, 16, 32},
                                    {8, 8, 64},
                                    {48, 48, 16},
                                    {6, 6, 128},
                                    {28, 28, 16},
                                    {7, 7, 64}};
  for (const auto& [h, w, c] : kImages) {
    for (const char* const family : {"batch_norm_f32_forward", "batch_norm_f32_backward"})
      problems.add(family, Problem::batch_norm(kTrainingBatch, h, w, c));
  }
}

Problems all_problems() {
  Problems problems;
  for (const auto& [m, k, n] :
       std::initializer_list<std::tuple<int64_t, int64_t, int64_t>>{{1024, 1024, 1024},
                                                                    {256, 256, 256},
                                                                    {64, 784, 256},
                                                                    {128, 3136, 128},
                                                                    {86528, 288, 32},
                                                                    {86528, 288, 64},
                                                                    {1, 784, 256}}) {
    add_gemm(problems, m, k, n);
  }
  const auto add_layers = [&](const Network& network, int64_t batch) {
    for (const Layer& layer : layers(network, batch)) {
      layer.linear ? add_linear(problems, layer, batch) : add_convolution(problems, layer);
    }
  };
  for (const Network& network : examples::networks()) {
    for (const int64_t batch : kBatches) add_layers(network, batch);
  }
  for (const Network& network : examples::tiny_networks()) add_layers(network, kTrainingBatch);
  add_depthwise(problems);
  add_few_bits(problems);
  add_batch_norms(problems);
  return problems;
}

void add_benchmarks(const Problems& problems) {
  std::vector<Implementation> implementations{
      quantrain_kernels(), vnni_kernels(), byte_kernels(), reference_kernels()};
#ifdef QUANTRAIN_HAS_OPENBLAS
  implementations.push_back(openblas_kernels());
#endif
#ifdef QUANTRAIN_HAS_ONEDNN
  implementations.push_back(onednn_kernels());
#endif
  for (const FamilyProblem& entry : problems.all()) {
    const std::string& family = entry.family;
    const Problem& problem = entry.problem;
    for (const Implementation& implementation : implementations) {
      const auto make = implementation.families.find(family);
      if (make == implementation.families.end()) continue;
      const bool reference = implementation.name == "reference";
      if (reference && problem.operations() > kReferenceOperations) continue;
      for (const int threads : thread_counts()) {
        if (reference && threads > 1) continue;
        add_benchmark(join(family, implementation.name, problem.name(), threads_part(threads)),
                      problem.operations(),
                      [problem, threads, use = implementation.use_threads, make = make->second] {
                        use(threads);
                        return make(problem);
                      });
      }
    }
  }
  for (const auto& [family, make] : quantrain_kernels().families) add_peaks(family);
}

/// The quotient of two rates, such as "1.07"; "-" if one of them was not measured.
std::string ratio(double ours, double theirs) {
  if (ours <= 0.0 || theirs <= 0.0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ours / theirs);
  return text;
}

/// Prints, for each problem of a family, our rate divided by that of each other implementation.
/// Then prints the geometric mean and the worst of these ratios.
void print_family(const std::string& family, const Problems& problems, const Results& results) {
  const std::vector<std::string> peers{"openblas", "onednn", "vnni", "bytes", "reference"};
  std::map<std::pair<size_t, int>, std::vector<double>> ratios;
  bool header = false;
  for (const FamilyProblem& entry : problems.all()) {
    if (entry.family != family) continue;
    const Problem& problem = entry.problem;
    for (const int threads : thread_counts()) {
      const auto name = [&](const std::string& implementation) {
        return join(family, implementation, problem.name(), threads_part(threads));
      };
      const double ours = results.rate(name("quantrain"));
      if (ours <= 0.0) continue;
      if (!header) {
        std::printf("\n%-44s %7s %9s %9s %9s %9s %9s %9s %7s %8s\n",
                    family.c_str(),
                    "threads",
                    "Gop/s",
                    "/openblas",
                    "/onednn",
                    "/vnni",
                    "/bytes",
                    "/referen.",
                    "/peak",
                    "/1 thread");
        header = true;
      }
      std::string columns[5];
      for (size_t i = 0; i < peers.size(); ++i) {
        const double theirs = results.rate(name(peers[i]));
        columns[i] = ratio(ours, theirs);
        if (theirs > 0.0) ratios[{i, threads}].push_back(ours / theirs);
      }
      const double alone = results.rate(join(family, "quantrain", problem.name(), threads_part(1)));
      std::printf("%-44s %7d %9.1f %9s %9s %9s %9s %9s %7s %8s\n",
                  problem.name().c_str(),
                  threads,
                  ours * 1e-9,
                  columns[0].c_str(),
                  columns[1].c_str(),
                  columns[2].c_str(),
                  columns[3].c_str(),
                  columns[4].c_str(),
                  ratio(ours, results.rate(peak_name(family, threads))).c_str(),
                  threads > 1 ? ratio(ours, alone).c_str() : "");
    }
  }
  for (const auto& [key, values] : ratios) {
    double logarithms = 0.0;
    for (const double value : values) logarithms += std::log(value);
    std::printf("  %s, %d thread%s: geometric mean %.2f, worst %.2f, of %zu shapes\n",
                peers[key.first].c_str(),
                key.second,
                key.second > 1 ? "s" : "",
                std::exp(logarithms / static_cast<double>(values.size())),
                *std::min_element(values.begin(), values.end()),
                values.size());
  }
}

}  // namespace
}  // namespace quantrain::benchmarks

int main(int argc, char** argv) {
  using namespace quantrain::benchmarks;
  if (!take_threads(argc, argv)) return 2;
  const Problems problems = all_problems();
  add_benchmarks(problems);
  return run(argc, argv, [&](const Results& results) {
    std::printf("\nOur rate divided by theirs\n");
    for (const auto& [family, make] : quantrain_kernels().families) {
      print_family(family, problems, results);
    }
  });
}

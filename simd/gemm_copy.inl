// SPDX-License-Identifier: Apache-2.0
// Copies of matrices, plain and transposed, written once over the vector vocabulary.
//
// Included after gemm_body.inl, whose rows of registers it uses.

namespace vitro::simd {
namespace {

// Rows of `columns` elements, one run of each row of y.
template <int vectors>
void copy_narrow_rows(const RunCopy& args, Vec::Mask last, const float* x, float* y) noexcept {
  for (Index i = 0; i < args.rows; i += args.block, x += args.x_block_stride) {
    for (Index j = 0; j < args.block; ++j, y += args.y_stride) {
      Vec::Reg row[vectors];
      load_row(row, last, x + j * args.x_stride);
      store_row(row, last, y);
    }
  }
}

void copy_long_runs(const RunCopy& args) noexcept {
  constexpr int kVectors = 4;
  for (Index r = 0; r < args.runs; ++r) {
    for (Index column = 0; column < args.run; column += kVectors * Vec::kWidth) {
      const Index width = smaller(args.run - column, kVectors * Vec::kWidth);
      const Index vectors = (width + Vec::kWidth - 1) / Vec::kWidth;
      const Vec::Mask last = Vec::first(width - (vectors - 1) * Vec::kWidth);
      const float* const from = args.x + args.offsets[r] + column;
      float* const to = args.y + r * args.run + column;
      switch (vectors) {
        case 1: copy_narrow_rows<1>(args, last, from, to); break;
        case 2: copy_narrow_rows<2>(args, last, from, to); break;
        case 3: copy_narrow_rows<3>(args, last, from, to); break;
        default: copy_narrow_rows<4>(args, last, from, to); break;
      }
    }
  }
}

// Lanes of one vector of a row: lane i of the mask is element start + i of x's row.
struct RunPiece {
  Vec::Mask mask;
  Index start;
};

// One vector of each row: `pieces` (at least one) loads, which leave each other's lanes alone, and one store.
template <int pieces>
void copy_run_vector(const RunCopy& args, const RunPiece (&piece)[Vec::kWidth], Vec::Mask stored, float* y) noexcept {
  const float* block = args.x;
  for (Index i = 0; i < args.rows; i += args.block, block += args.x_block_stride) {
    const float* x = block;
    for (Index j = 0; j < args.block; ++j, x += args.x_stride, y += args.y_stride) {
      Vec::Reg row = Vec::load(piece[0].mask, x + piece[0].start);
      VITRO_UNROLL
      for (int k = 1; k < pieces; ++k) row = Vec::fill(row, piece[k].mask, x + piece[k].start);
      Vec::store(stored, y, row);
    }
  }
}

// One store for each vector of y instead of one for each run: the gradient of LeNet-5's first filters, with runs of 5 floats,
// went from 448 to 354 us (64 images, AVX-512).
void copy_short_runs(const RunCopy& args) noexcept {
  const Index columns = args.runs * args.run;
  for (Index column = 0; column < columns; column += Vec::kWidth) {
    const Index end = smaller(column + Vec::kWidth, columns);
    RunPiece piece[Vec::kWidth];
    int pieces = 0;
    for (Index at = column; at < end;) {
      const Index run = at / args.run, next = smaller((run + 1) * args.run, end);
      // Not negative: a run lies no nearer to x than to the beginning of y's row.
      piece[pieces++] = {Vec::mask_and(Vec::first(next - column), Vec::mask_not(Vec::first(at - column))),
                         args.offsets[run] - run * args.run + column};
      at = next;
    }
    const Vec::Mask stored = Vec::first(end - column);
    switch (pieces) {
      case 1: copy_run_vector<1>(args, piece, stored, args.y + column); break;
      case 2: copy_run_vector<2>(args, piece, stored, args.y + column); break;
      case 3: copy_run_vector<3>(args, piece, stored, args.y + column); break;
      case 4: copy_run_vector<4>(args, piece, stored, args.y + column); break;
      default:
        for (; pieces < Vec::kWidth; ++pieces) piece[pieces] = {Vec::first(0), 0};
        copy_run_vector<Vec::kWidth>(args, piece, stored, args.y + column);
    }
  }
}

void body_copy_runs(const RunCopy& args) noexcept {
  if (args.run < Vec::kWidth) return copy_short_runs(args);
  copy_long_runs(args);
}

// Tiles of the vectors' width, those of one stripe of x's columns first: y, which is written, is the one to be written in runs.
// A tile that the last row would cut short begins earlier, and is written twice.
void transpose_tiles(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  const Index height = smaller(Vec::kWidth, rows);
  const Vec::Mask out_mask = Vec::first(height);
  for (Index j = 0; j < columns; j += Vec::kWidth) {
    for (Index i = 0; i < rows; i += Vec::kWidth) {
      const Index row = smaller(i, rows - height);
      float* const to = y + j * y_stride + row;
      for_each_transposed(height, smaller(Vec::kWidth, columns - j), x + row * x_stride + j, x_stride,
                          [=](Index q, Vec::Reg column) { Vec::store(out_mask, to + q * y_stride, column); });
    }
  }
}

// Where vectors are wider than the channels of most small images, a tile of half as many rows or columns takes a third of the
// exchanges of a whole one. T is Tuning.
template <class T>
void transpose_few_rows(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  constexpr int kHalf = (Vec::kWidth + 1) / 2;
  const Vec::Mask out_mask = Vec::first(rows);
  for (Index j = 0; j < columns; j += Vec::kWidth) {
    const Index width = smaller(Vec::kWidth, columns - j);
    const Vec::Mask in_mask = Vec::first(width);
    Vec::Reg in[kHalf], out[kHalf];
    VITRO_UNROLL
    for (int r = 0; r < kHalf; ++r) in[r] = r < rows ? Vec::load(in_mask, x + r * x_stride + j) : Vec::zero();
    T::transpose_halves(in, out);
    float* const to = y + j * y_stride;
    VITRO_UNROLL
    for (int c = 0; c < kHalf; ++c) {
      if (c + kHalf < width) {
        T::store_halves(out[c], out_mask, to + c * y_stride, out_mask, to + (c + kHalf) * y_stride);
      } else if (c < width) {
        Vec::store(out_mask, to + c * y_stride, out[c]);
      }
    }
  }
}

template <class T>
void transpose_few_columns(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  constexpr int kHalf = (Vec::kWidth + 1) / 2;
  const Vec::Mask in_mask = Vec::first(columns), none = Vec::first(0);
  for (Index i = 0; i < rows; i += Vec::kWidth) {
    const Index height = smaller(Vec::kWidth, rows - i);
    const Vec::Mask out_mask = Vec::first(height);
    const float* const from = x + i * x_stride;
    Vec::Reg in[kHalf], out[kHalf];
    VITRO_UNROLL
    for (int r = 0; r < kHalf; ++r) {
      const bool low = r < height, high = r + kHalf < height;
      in[r] = T::load_halves(low ? in_mask : none, low ? from + r * x_stride : from, high ? in_mask : none,
                             high ? from + (r + kHalf) * x_stride : from);
    }
    T::transpose_halves(in, out);
    VITRO_UNROLL
    for (int c = 0; c < kHalf; ++c) {
      if (c < columns) Vec::store(out_mask, y + c * y_stride + i, out[c]);
    }
  }
}

template <class T>
void transpose_with(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  if (T::interleave_planes(rows, columns, x, x_stride, y, y_stride)) return;
  if constexpr (Vec::kWidth == 16) {
    if (rows <= Vec::kWidth / 2) return transpose_few_rows<T>(rows, columns, x, x_stride, y, y_stride);
    if (columns <= Vec::kWidth / 2) return transpose_few_columns<T>(rows, columns, x, x_stride, y, y_stride);
  }
  transpose_tiles(rows, columns, x, x_stride, y, y_stride);
}

void body_transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  transpose_with<Tuning>(rows, columns, x, x_stride, y, y_stride);
}

}  // namespace
}  // namespace vitro::simd

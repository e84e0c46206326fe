use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{CpuStorage, CustomOp1, Device, Error, Layout, Result, Tensor};

/// A weight matrix, possibly quantised, for fast products with activations.
///
/// candle has two implementations for Q8_0: a plain one, and one on repacked weights that is 1.7 times as fast for one
/// row and ten times as fast for many. The second one needs a processor with VNNI, columns in multiples of 256 and rows
/// in multiples of 16. Many models miss that by a little (SmolLM2 has 576 columns), so such a matrix is padded with
/// zeros, which change no product.
#[derive(Debug)]
pub(crate) struct Matrix {
    weight: QTensor,
    rows: usize,
    columns: usize,
    /// The stored size, including padding.
    stored: (usize, usize),
}

impl Matrix {
    /// Creates a matrix of bytes in GGUF's layout: row by row, each a whole number of blocks.
    pub(crate) fn new(dtype: GgmlDType, bytes: &[u8], rows: usize, columns: usize) -> Result<Self> {
        let stored = match dtype {
            GgmlDType::Q8_0 if has_vnni() && columns >= 256 => {
                (rows.next_multiple_of(16), columns.next_multiple_of(256))
            }
            _ => (rows, columns),
        };
        let bytes = if stored == (rows, columns) {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(fill_up(dtype, bytes, (rows, columns), stored))
        };
        let storage = QStorage::from_data(bytes, &Device::Cpu, dtype)?;
        Ok(Self { weight: QTensor::new(storage, stored)?, rows, columns, stored })
    }

    /// Returns the product with each row of `input`: each result has as many numbers as the matrix has rows.
    ///
    /// The result of a row depends only on that row and on whether there is one row or several.
    pub(crate) fn apply(&self, input: &[f32]) -> Result<Vec<f32>> {
        let count = input.len() / self.columns;
        if count == 0 || count * self.columns != input.len() {
            return Err(Error::msg(format!("{} numbers for {} columns", input.len(), self.columns)));
        }
        let input = widen(input, self.columns, self.stored.1);
        let layout = Layout::contiguous((count, self.stored.1));
        let (output, _) = self.weight.cpu_fwd(&CpuStorage::F32(input), &layout)?;
        match output {
            CpuStorage::F32(output) => Ok(narrow(output, self.stored.0, self.rows)),
            _ => Err(Error::msg("a product of f32 is f32")),
        }
    }

    /// Returns the dequantised rows with these numbers, as for a token embedding.
    pub(crate) fn rows(&self, numbers: &[u32]) -> Result<Vec<f32>> {
        if let Some(number) = numbers.iter().find(|number| **number as usize >= self.rows) {
            return Err(Error::msg(format!("there is no row {number} in {}", self.rows)));
        }
        let found = self.weight.embedding(&Tensor::new(numbers, &Device::Cpu)?)?;
        Ok(narrow(found.flatten_all()?.to_vec1()?, self.stored.1, self.columns))
    }
}

/// Returns the bytes with zero blocks after each row and zero rows at the end.
fn fill_up(dtype: GgmlDType, bytes: &[u8], from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
    let length = |columns: usize| columns / dtype.block_size() * dtype.type_size();
    let mut filled = vec![0; to.0 * length(to.1)];
    for (new, old) in filled.chunks_exact_mut(length(to.1)).zip(bytes.chunks_exact(length(from.1))) {
        new[..old.len()].copy_from_slice(old);
    }
    filled
}

/// Pads rows of `from` numbers to `to` numbers with zeros.
fn widen(input: &[f32], from: usize, to: usize) -> Vec<f32> {
    if from == to {
        return input.to_vec();
    }
    let mut wide = vec![0.0; input.len() / from * to];
    for (new, old) in wide.chunks_exact_mut(to).zip(input.chunks_exact(from)) {
        new[..from].copy_from_slice(old);
    }
    wide
}

/// Returns the first `to` of every `from` numbers.
fn narrow(output: Vec<f32>, from: usize, to: usize) -> Vec<f32> {
    if from == to {
        return output;
    }
    output.chunks_exact(from).flat_map(|row| &row[..to]).copied().collect()
}

/// Returns whether candle uses its fast implementation on this processor.
fn has_vnni() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512vnni") || std::arch::is_x86_feature_detected!("avxvnni")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + 13) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    fn quantised(values: &[f32], rows: usize, columns: usize) -> Vec<u8> {
        let tensor = Tensor::from_vec(values.to_vec(), (rows, columns), &Device::Cpu).unwrap();
        QTensor::quantize(&tensor, GgmlDType::Q8_0).unwrap().data().unwrap().into_owned()
    }

    #[test]
    fn a_filled_up_matrix_multiplies_as_the_plain_one() {
        for (rows, columns) in [(20, 288), (48, 576), (16, 512), (7, 64)] {
            let values = random(rows * columns);
            let bytes = quantised(&values, rows, columns);
            let matrix = Matrix::new(GgmlDType::Q8_0, &bytes, rows, columns).unwrap();
            for count in [1, 3, 16] {
                let input = random(count * columns);
                let output = matrix.apply(&input).unwrap();
                assert_eq!(output.len(), count * rows);
                for (i, found) in output.iter().enumerate() {
                    let (x, w) = (&input[i / rows * columns..], &values[i % rows * columns..]);
                    let exact: f32 = x.iter().zip(w).take(columns).map(|(x, w)| x * w).sum();
                    assert!((found - exact).abs() < 0.02 * columns as f32, "{found} {exact}");
                }
            }
            let row = matrix.rows(&[rows as u32 - 1]).unwrap();
            assert_eq!(row.len(), columns);
            assert!(matrix.rows(&[rows as u32]).is_err() && matrix.apply(&[0.0; 3]).is_err());
        }
    }

    #[test]
    fn a_row_gives_the_same_bits_among_any_other_rows() {
        let (rows, columns) = (48, 576);
        let matrix =
            Matrix::new(GgmlDType::Q8_0, &quantised(&random(rows * columns), rows, columns), rows, columns);
        let matrix = matrix.unwrap();
        let input = random(64 * columns);
        let all = matrix.apply(&input).unwrap();
        for range in [0..16, 2..4, 5..64, 16..32, 40..43] {
            let some = matrix.apply(&input[range.start * columns..range.end * columns]).unwrap();
            assert_eq!(all[range.start * rows..range.end * rows], some, "{range:?}");
        }
    }
}

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use candle_core::quantized::{GgmlDType, QStorage, QTensor, gguf_file};
use candle_core::{Device, Result, Tensor};

use super::{Gguf, Matrix};
use crate::LocalError;
use crate::weights::{Found, Scratch, Store, noted, place, sha256, verify};

/// The tensors of a model, in its file or re-quantised in memory.
#[derive(Debug)]
pub(crate) enum Tensors {
    File(Gguf),
    Converted(Gguf, HashMap<String, QTensor>),
}

impl Tensors {
    /// Opens a file. A file with types that candle multiplies without SIMD is re-quantised to Q8_0 first.
    ///
    /// The cache keeps the result under the file's SHA-256, so that this happens once. If the cache cannot be written,
    /// the tensors in memory are used.
    pub(crate) fn open(
        path: &Path,
        sha: Option<&str>,
        store: &Store,
    ) -> std::result::Result<Self, LocalError> {
        let gguf = Gguf::open(path)?;
        if !gguf.content().tensor_infos.values().any(|info| is_slow(info.ggml_dtype)) {
            return Ok(Self::File(gguf));
        }
        let sha = match sha {
            Some(sha) => sha.to_owned(),
            None => {
                let total = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
                sha256(path, |done| store.report("hashing", done, total))?
            }
        };
        let kept = store.converted(&sha);
        if kept.is_file() {
            // The hash was written with the file; files of older versions have none.
            if let Some(noted) = noted(&kept) {
                match (verify(store, &kept, &noted), Gguf::open(&kept)) {
                    (Ok(Found::Whole), Ok(gguf)) => return Ok(Self::File(gguf)),
                    _ => store.notice(&format!("{} is damaged: it is made anew", kept.display())),
                }
            }
            drop(std::fs::remove_file(&kept));
        }
        let (gguf, tensors) = convert(gguf, store)?;
        // A full or read-only disk costs the next start two seconds, and must not fail this one.
        let _ = keep(&gguf, &tensors, store, &kept);
        Ok(Self::Converted(gguf, tensors))
    }

    /// Returns the header.
    pub(crate) const fn gguf(&self) -> &Gguf {
        match self {
            Self::File(gguf) | Self::Converted(gguf, _) => gguf,
        }
    }

    /// Returns a weight matrix of exactly this shape.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> std::result::Result<Matrix, LocalError> {
        let (dtype, bytes) = self.read(name, &[rows, columns])?;
        Matrix::new(dtype, &bytes, rows, columns)
            .map_err(|error| self.gguf().error(format!("the tensor `{name}`: {error}")))
    }

    /// Returns a vector of exactly this length, as f32.
    pub(crate) fn vector(&mut self, name: &str, length: usize) -> std::result::Result<Vec<f32>, LocalError> {
        let (dtype, bytes) = self.read(name, &[length])?;
        dequantise(dtype, bytes, &[length])
            .and_then(|tensor| tensor.to_vec1())
            .map_err(|error| self.gguf().error(format!("the tensor `{name}`: {error}")))
    }

    /// Returns a tensor's bytes, if it has this shape.
    fn read(
        &mut self,
        name: &str,
        expected: &[usize],
    ) -> std::result::Result<(GgmlDType, Vec<u8>), LocalError> {
        let (dtype, shape, bytes) = match self {
            Self::Converted(gguf, tensors) if tensors.contains_key(name) => {
                let tensor =
                    tensors.remove(name).ok_or_else(|| gguf.error(format!("`{name}` is missing")))?;
                let bytes = tensor.data().map_err(|error| gguf.error(error))?.into_owned();
                (tensor.dtype(), tensor.shape().dims().to_vec(), bytes)
            }
            Self::File(gguf) | Self::Converted(gguf, _) => gguf.tensor(name)?,
        };
        if shape != expected {
            let reason = format!("the tensor `{name}` has the shape {shape:?} where {expected:?} is needed");
            return Err(self.gguf().error(reason));
        }
        Ok((dtype, bytes))
    }
}

/// Returns whether candle multiplies this type without SIMD (0.11: measured 16 tokens a second, compared with 45 for
/// Q8_0).
const fn is_slow(dtype: GgmlDType) -> bool {
    matches!(dtype, GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1)
}

/// Returns all tensors of a file, the slow ones as Q8_0.
fn convert(
    mut gguf: Gguf,
    store: &Store,
) -> std::result::Result<(Gguf, HashMap<String, QTensor>), LocalError> {
    let names = gguf.names();
    let total = names.len() as u64;
    let mut tensors = HashMap::new();
    for (done, name) in (0..).zip(names) {
        store.report("re-quantising to Q8_0", done, total);
        let (dtype, shape, bytes) = gguf.tensor(&name)?;
        let tensor = if is_slow(dtype) {
            dequantise(dtype, bytes, &shape).and_then(|tensor| QTensor::quantize(&tensor, GgmlDType::Q8_0))
        } else {
            QStorage::from_data(bytes.into(), &Device::Cpu, dtype)
                .and_then(|storage| QTensor::new(storage, shape))
        };
        let tensor = tensor.map_err(|error| gguf.error(format!("the tensor `{name}`: {error}")))?;
        tensors.insert(name, tensor);
    }
    store.report("re-quantising to Q8_0", total, total);
    Ok((gguf, tensors))
}

/// Writes a converted file to its place in the cache.
fn keep(
    gguf: &Gguf,
    tensors: &HashMap<String, QTensor>,
    store: &Store,
    to: &Path,
) -> std::result::Result<(), LocalError> {
    let scratch = Scratch::new(store.folder())?;
    let path = scratch.path().join("converted.gguf");
    let failed = |error: &dyn std::fmt::Display| LocalError::file(&path, error);
    let mut out = BufWriter::new(File::create(&path).map_err(|error| failed(&error))?);
    let metadata = gguf.content().metadata.iter();
    // candle aligns to 32 bytes, whatever the source file declares.
    let metadata: Vec<_> = metadata
        .filter(|(key, _)| *key != "general.alignment")
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    gguf_file::write(&mut out, &metadata, &tensors).map_err(|error| failed(&error))?;
    let file = out.into_inner().map_err(|error| failed(&error))?;
    (&file).flush().and_then(|()| file.sync_all()).map_err(|error| failed(&error))?;
    let sha256 = sha256(&path, |_| ())?;
    place(store, &scratch, &path, to, &sha256)
}

fn dequantise(dtype: GgmlDType, bytes: Vec<u8>, shape: &[usize]) -> Result<Tensor> {
    let storage = QStorage::from_data(bytes.into(), &Device::Cpu, dtype)?;
    QTensor::new(storage, shape)?.dequantize(&Device::Cpu)
}

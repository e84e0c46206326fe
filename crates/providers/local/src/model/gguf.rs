use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, Value};

use crate::LocalError;
use crate::error::panic_text;

/// An open GGUF file, whose header was checked against the file's length.
#[derive(Debug)]
pub(crate) struct Gguf {
    path: PathBuf,
    file: BufReader<File>,
    content: Content,
}

impl Gguf {
    /// Reads the header.
    pub(crate) fn open(path: &Path) -> Result<Self, LocalError> {
        let mut file = File::open(path).map_err(|error| LocalError::file(path, error))?;
        let length = file.metadata().map_err(|error| LocalError::file(path, error))?.len();
        let mut magic = Vec::new();
        Read::by_ref(&mut file)
            .take(4)
            .read_to_end(&mut magic)
            .map_err(|error| LocalError::file(path, error))?;
        match magic.as_slice() {
            b"GGUF" => {}
            b"" => return Err(LocalError::model(path, "the file is empty")),
            [b'P', b'K', ..] => {
                let reason = "a zip archive (or a wheel), not a GGUF file: unzip the .gguf file out of it";
                return Err(LocalError::model(path, reason));
            }
            _ => return Err(LocalError::model(path, "not a GGUF file: it does not begin with `GGUF`")),
        }
        file.rewind().map_err(|error| LocalError::file(path, error))?;
        let mut file = BufReader::new(file);
        // The parser bounds its allocations by the file's length, but a malicious header can still make its arithmetic
        // panic.
        let content = catch_unwind(AssertUnwindSafe(|| Content::read(&mut file)))
            .map_err(|panic| LocalError::model(path, format!("damaged header: {}", panic_text(&*panic))))?
            .map_err(|error| LocalError::model(path, format!("damaged or cut off: {error}")))?;
        let gguf = Self { path: path.to_owned(), file, content };
        gguf.check_lengths(length)?;
        Ok(gguf)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the header as candle parsed it.
    pub(crate) const fn content(&self) -> &Content {
        &self.content
    }

    /// Returns an error about this file.
    pub(crate) fn error(&self, reason: impl ToString) -> LocalError {
        LocalError::model(&self.path, reason)
    }

    /// Returns a string of the metadata.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.content.metadata.get(key)?.to_string().ok().map(String::as_str)
    }

    /// Returns a non-negative integer of the metadata, of any integer type.
    pub(crate) fn number(&self, key: &str) -> Option<usize> {
        match self.content.metadata.get(key)? {
            Value::U8(number) => Some(usize::from(*number)),
            Value::U16(number) => Some(usize::from(*number)),
            Value::U32(number) => usize::try_from(*number).ok(),
            Value::U64(number) => usize::try_from(*number).ok(),
            Value::I8(number) => usize::try_from(*number).ok(),
            Value::I16(number) => usize::try_from(*number).ok(),
            Value::I32(number) => usize::try_from(*number).ok(),
            Value::I64(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns a float of the metadata.
    pub(crate) fn fraction(&self, key: &str) -> Option<f32> {
        match self.content.metadata.get(key)? {
            Value::F32(number) => Some(*number),
            Value::F64(number) => Some(*number as f32),
            _ => None,
        }
    }

    /// Returns a boolean of the metadata.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.content.metadata.get(key)?.to_bool().ok()
    }

    /// Returns an array of the metadata.
    pub(crate) fn list(&self, key: &str) -> Option<&[Value]> {
        self.content.metadata.get(key)?.to_vec().ok().map(Vec::as_slice)
    }

    /// Returns the number of the model's parameters: the elements of all tensors.
    pub(crate) fn parameters(&self) -> u64 {
        let sizes = self.content.tensor_infos.values().map(|info| info.shape.elem_count() as u64);
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns whether the file has a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Returns the names of all tensors, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.content.tensor_infos.keys().cloned().collect();
        names.sort();
        names
    }

    /// Returns the stored bytes of a tensor, with its type and its shape, outermost dimension first.
    pub(crate) fn tensor(&mut self, name: &str) -> Result<(GgmlDType, Vec<usize>, Vec<u8>), LocalError> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Err(self.error(format!("the tensor `{name}` is missing")));
        };
        let (dtype, shape) = (info.ggml_dtype, info.shape.dims().to_vec());
        let start = self.content.tensor_data_offset.saturating_add(info.offset);
        let length = stored_length(dtype, &shape)
            .ok_or_else(|| self.error(format!("the tensor `{name}` has an impossible shape")))?;
        let mut bytes = vec![0; length];
        let read =
            self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(bytes.as_mut_slice()));
        read.map_err(|error| self.error(format!("the tensor `{name}` cannot be read: {error}")))?;
        Ok((dtype, shape, bytes))
    }

    /// Checks that every tensor lies within the file, so that nothing is allocated for a truncated one.
    fn check_lengths(&self, length: u64) -> Result<(), LocalError> {
        for (name, info) in &self.content.tensor_infos {
            let stored = stored_length(info.ggml_dtype, info.shape.dims())
                .ok_or_else(|| self.error(format!("damaged: the tensor `{name}` has an impossible shape")))?;
            let end = self.content.tensor_data_offset.checked_add(info.offset);
            let end = end.and_then(|start| start.checked_add(stored as u64));
            if end.is_none_or(|end| end > length) {
                let reason = format!("cut off: the tensor `{name}` ends behind the end of the file");
                return Err(self.error(reason));
            }
        }
        Ok(())
    }
}

/// Returns the stored length of a tensor in bytes; `None` if its shape overflows or splits a block.
fn stored_length(dtype: GgmlDType, shape: &[usize]) -> Option<usize> {
    let elements = shape.iter().try_fold(1usize, |product, side| product.checked_mul(*side))?;
    let block = dtype.block_size();
    if !elements.is_multiple_of(block) || !shape.last().is_none_or(|row| row.is_multiple_of(block)) {
        return None;
    }
    (elements / block).checked_mul(dtype.type_size())
}

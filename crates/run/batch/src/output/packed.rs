//! Files that are compressed if their name ends in `.gz` or `.zst`.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress};

/// The number of bytes of a Zstandard frame; a file has as many frames as it needs.
const FRAME: usize = 8 << 20;

/// A writer that compresses.
pub(super) enum Packed<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(W, Vec<u8>),
}

impl<W: Write> Packed<W> {
    /// Creates a writer for a file of this name in small letters.
    pub(super) fn new(file: W, name: &str) -> Self {
        if name.ends_with(".gz") {
            Self::Gzip(GzEncoder::new(file, Compression::default()))
        } else if name.ends_with(".zst") {
            Self::Zstd(file, Vec::new())
        } else {
            Self::Plain(file)
        }
    }

    /// Writes what is left, and returns the file.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(file) => Ok(file),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(mut file, rest) => {
                compress(&*rest, &mut file, CompressionLevel::Fastest);
                Ok(file)
            }
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(file, frame) => {
                frame.extend_from_slice(bytes);
                if frame.len() >= FRAME {
                    let mut packed = Vec::new();
                    compress(&**frame, &mut packed, CompressionLevel::Fastest);
                    frame.clear();
                    file.write_all(&packed)?;
                }
                Ok(bytes.len())
            }
        }
    }

    /// Does not end a frame: bytes that are not written yet wait for more.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(file, _) => file.flush(),
        }
    }
}

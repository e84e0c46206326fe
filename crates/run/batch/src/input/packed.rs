//! Files that may be compressed: gzip and Zstandard are recognized by their first bytes, not by the name of the file.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The size of the buffers before and after a decoder.
const BUFFER: usize = 1 << 18;

/// The first bytes of formats that are no text, with the advice for each.
const BINARY: [(&[u8], &str); 7] = [
    (b"PAR1", "this is Parquet: name the file *.parquet"),
    (b"ARROW1", "this is Arrow IPC: name the file *.arrow"),
    (b"PK\x03\x04", "this is a ZIP archive or a spreadsheet: unpack it, or save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "this is a document of an older Office: save it as CSV"),
    (b"%PDF", "this is a PDF: convert it to text"),
    (b"SQLite format 3\0", "this is a SQLite database: export a table as CSV"),
    (b"BZh", "this is compressed with bzip2: use gzip or zstd"),
];

/// A reader of the uncompressed bytes of a file.
pub(super) type Text = BufReader<Box<dyn Read + Send>>;

/// Returns the text of a file. The error says why the bytes cannot be text.
pub(super) fn unpacked(packed: impl Read + Send + 'static) -> io::Result<Text> {
    let mut packed = BufReader::with_capacity(BUFFER, packed);
    let first = packed.fill_buf()?;
    let plain: Box<dyn Read + Send> = if first.starts_with(b"\x1f\x8b") {
        Box::new(MultiGzDecoder::new(packed))
    } else if first.starts_with(b"\x28\xb5\x2f\xfd") || is_skippable(first) {
        Box::new(Frames { packed: Some(packed), frame: None })
    } else {
        Box::new(packed)
    };
    let mut text = BufReader::with_capacity(BUFFER, plain);
    let first = text.fill_buf()?;
    if let Some((_, advice)) = BINARY.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(io::Error::other(*advice));
    }
    if let Some(nul) = first.iter().position(|byte| *byte == 0) {
        return Err(io::Error::other(format!("byte {nul} is 0, so this is no text in UTF-8")));
    }
    Ok(text)
}

/// Returns whether a Zstandard file begins with a frame that is to be skipped.
fn is_skippable(first: &[u8]) -> bool {
    matches!(first, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The frames of a Zstandard file, one after the other.
struct Frames<R: BufRead> {
    /// Between two frames.
    packed: Option<R>,
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                let (written, found) =
                    (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
                if written.is_some_and(|written| found != Some(written)) {
                    return Err(io::Error::other(
                        "damaged Zstandard: the checksum of a frame is another one",
                    ));
                }
                self.packed = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut packed) = self.packed.take() else { return Ok(0) };
            if packed.fill_buf()?.is_empty() {
                return Ok(0);
            }
            if is_skippable(packed.fill_buf()?) {
                let mut header = [0; 8];
                packed.read_exact(&mut header)?;
                let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
                let skipped = io::copy(&mut packed.by_ref().take(length.into()), &mut io::sink())?;
                if skipped < length.into() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.packed = Some(packed);
                continue;
            }
            let frame = StreamingDecoder::new(packed);
            self.frame =
                Some(frame.map_err(|error| io::Error::other(format!("damaged Zstandard: {error}")))?);
        }
    }
}

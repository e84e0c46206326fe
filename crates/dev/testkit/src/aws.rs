/// Returns a message of an event stream of AWS (`application/vnd.amazon.eventstream`) whose headers are texts.
///
/// Beyond 255 bytes of a name, 64 KiB of a header or 4 GiB in all, the lengths are wrong.
///
/// ```
/// let message = formwork_testkit::aws_message(&[(":event-type", "messageStop")], "{}");
/// assert_eq!(message[..4], (message.len() as u32).to_be_bytes());
/// ```
pub fn aws_message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let number = |number: usize| u32::try_from(number).unwrap_or_default().to_be_bytes();
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or_default());
        head.extend_from_slice(name.as_bytes());
        // The type of a text.
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let mut out = [number(12 + head.len() + payload.len() + 4), number(head.len())].concat();
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

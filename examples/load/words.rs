//! Random words with the letters of English. They compress as far as single letters do, to about
//! 57 %, and no further.

/// Each letter about as often as in English.
const LETTERS: &[u8] =
    b"eeeeeeeeeeeetttttttttaaaaaaaaooooooooiiiiiiinnnnnnnsssssshhhhhhrrrrrrddddllllcccuuummmwwffggyyppbbvk";
const SHORTEST: usize = 2;
const LENGTHS: usize = 8;

/// Returns words with so many bytes together.
pub(crate) fn words(bytes: usize) -> String {
    let mut random = blake3::Hasher::new()
        .update(uuid::Uuid::now_v7().as_bytes())
        .finalize_xof();
    let mut text = String::with_capacity(bytes + SHORTEST + LENGTHS);
    while text.len() < bytes {
        let mut word = [0; SHORTEST + LENGTHS];
        random.fill(&mut word);
        let length = SHORTEST + usize::from(word[0]) % LENGTHS;
        text.extend(word[..length].iter().map(|byte| letter(*byte)));
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

fn letter(byte: u8) -> char {
    char::from(LETTERS[usize::from(byte) * LETTERS.len() / 256])
}

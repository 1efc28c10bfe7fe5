//! Text that can't be compressed much.

/// Makes so many bytes of text; another seed gives another text.
pub fn noise(seed: usize, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let mut random = vec![0; bytes];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut random);
    let letters = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)]));
    letters.collect()
}

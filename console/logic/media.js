// @ts-check
// What bytes are, whatever their name or sender says. Pure.

/** The first bytes of the pictures that are shown. SVG is text. */
const PICTURES = { 'image/png': /^\x89PNG\r\n\x1a\n/, 'image/jpeg': /^\xff\xd8\xff/, 'image/webp': /^RIFF[^]{4}WEBP/ };

/** Returns the type of a picture by its first bytes, else null. @param {Uint8Array} bytes */
export function pictureType(bytes) {
  const head = String.fromCharCode(...bytes.subarray(0, 16));
  return Object.entries(PICTURES).find(([, pattern]) => pattern.test(head))?.[0] ?? null;
}

/** Returns the first bytes of base64; none if it is not base64. @param {string} data */
export function headOf(data) {
  try {
    return Uint8Array.from(atob(data.slice(0, 24)), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** Encodes bytes as base64. @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/**
 * Decodes text; null if the bytes are no text.
 * @param {Uint8Array} bytes @param {boolean} isCut Whether the last character may be cut.
 */
export function decodeText(bytes, isCut) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

/**
 * The image can't be used, and why. The message is for whoever owns the pool: it names no path of
 * the host.
 */
export class ImageRefused extends Error {
  override readonly name = 'ImageRefused';
}

/**
 * The image can't be used. The message is for the owner of the pool, and names no path of the host.
 */
export class ImageRefused extends Error {
  override readonly name = 'ImageRefused';
}

/** For the owner of the pool: names no path of the host. */
export class ImageRefused extends Error {
  override readonly name = 'ImageRefused';
}

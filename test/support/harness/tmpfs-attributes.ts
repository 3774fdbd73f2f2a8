import { statfsSync } from 'node:fs';
import { release } from 'node:os';

/** Since Linux 6.6. Files' metadata are kept in them. */
export const tmpfsHasAttributes = (): boolean => {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 6);
};

export const NO_ATTRIBUTES = 'tmpfs has no attributes of users before Linux 6.6';

const TMPFS = 0x01021994;

/** Whether a folder of this machine keeps user attributes. */
export const keepsAttributes = (folder: string): boolean =>
  statfsSync(folder).type !== TMPFS || tmpfsHasAttributes();

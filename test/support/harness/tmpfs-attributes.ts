import { release } from 'node:os';

/** Whether tmpfs has attributes of users, in which metadata of files is kept: since Linux 6.6. */
export const tmpfsHasAttributes = (): boolean => {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 6);
};

export const NO_ATTRIBUTES = 'tmpfs has no attributes of users before Linux 6.6';

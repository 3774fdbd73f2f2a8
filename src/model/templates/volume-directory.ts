import { isDnsLabel } from '../identifiers.ts';

/**
 * A directory of this machine that sandboxes of a namespace may mount under the name of a claim.
 */
export interface VolumeDirectory {
  readonly namespace: string;
  readonly claimName: string;
  /** Absolute. */
  readonly path: string;
}

/** Parses `NAMESPACE/CLAIM=/PATH`; undefined if the text is malformed. */
export const parseVolumeDirectory = (text: string): VolumeDirectory | undefined => {
  const [, namespace = '', claimName = '', path = ''] =
    /^([^/=]+)\/([^/=]+)=(\/.*)$/s.exec(text) ?? [];
  const isPath = path !== '' && !path.includes('\0') && !path.split('/').includes('..');
  return isDnsLabel(namespace) && isDnsLabel(claimName) && isPath
    ? { namespace, claimName, path }
    : undefined;
};

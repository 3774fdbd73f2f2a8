import { isDnsLabel } from '../identifiers.ts';

/** Sandboxes of a namespace may mount it under the name of a claim. */
export interface VolumeDirectory {
  readonly namespace: string;
  readonly claimName: string;
  readonly path: string;
}

/** Parses `NAMESPACE/CLAIM=/PATH`. */
export const parseVolumeDirectory = (text: string): VolumeDirectory | undefined => {
  const [, namespace = '', claimName = '', path = ''] =
    /^([^/=]+)\/([^/=]+)=(\/.*)$/s.exec(text) ?? [];
  const isPath = path !== '' && !path.includes('\0') && !path.split('/').includes('..');
  return isDnsLabel(namespace) && isDnsLabel(claimName) && isPath
    ? { namespace, claimName, path }
    : undefined;
};

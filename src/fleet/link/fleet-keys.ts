import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';

export interface FleetKey {
  /** SPKI in base64. */
  readonly publicKey: string;
  /** PKCS #8 in PEM. */
  readonly privateKeyPem: string;
  readonly sign: (text: string) => string;
}

export const newFleetKey = (): FleetKey =>
  fleetKeyOf(
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  );

/** Throws if the text is not a private key. */
export const fleetKeyOf = (privateKeyPem: string): FleetKey => {
  const privateKey = createPrivateKey(privateKeyPem);
  return {
    publicKey: createPublicKey(privateKey)
      .export({ type: 'spki', format: 'der' })
      .toString('base64'),
    privateKeyPem,
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64url'),
  };
};

/** Parses an Ed25519 key once, for many signatures. */
export const signatureCheck = (
  publicKey: string,
): ((text: string, signature: string) => boolean) | undefined => {
  let key: KeyObject;
  try {
    key = createPublicKey({
      key: Buffer.from(publicKey, 'base64'),
      format: 'der',
      type: 'spki',
    });
  } catch {
    return undefined;
  }
  if (key.asymmetricKeyType !== 'ed25519') return undefined;
  return (text, signature) =>
    verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
};

export const newNonce = (): string => randomBytes(18).toString('base64url');

/** Join tokens hold the fingerprint, so a worker can check its first manager. */
export const fingerprintOf = (publicKey: string): string =>
  createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('base64url');

const JOIN_TOKEN = /^spj_([A-Za-z0-9_-]{32})\.([A-Za-z0-9_-]{43})$/;

export interface JoinToken {
  readonly text: string;
  readonly fingerprint: string;
}

export const newJoinToken = (managerKey: string): JoinToken => {
  const fingerprint = fingerprintOf(managerKey);
  return { text: `spj_${randomBytes(24).toString('base64url')}.${fingerprint}`, fingerprint };
};

/** Undefined if the text is not a join token. */
export const parseJoinToken = (text: string): JoinToken | undefined => {
  const fingerprint = JOIN_TOKEN.exec(text)?.[2];
  return fingerprint === undefined ? undefined : { text, fingerprint };
};

export const joinHashOf = (token: string): string =>
  createHash('sha256').update(token).digest('hex');

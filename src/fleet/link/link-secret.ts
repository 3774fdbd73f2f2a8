import {
  createHmac,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto';

/** Signs texts, and tells whether one was signed by the same secret. */
export interface LinkSecret {
  readonly sign: (text: string) => string;
  readonly isSigned: (text: string, signature: string) => boolean;
}

/** One end's half of a secret that both ends of a link agree on, for that link alone. */
export interface SecretHalf {
  /** A key of X25519, SPKI in base64. It says nothing about the secret. */
  readonly publicKey: string;
  /**
   * Returns what both ends come to, which nobody between them does, where each has proved that this
   * transcript, which holds both public keys, is its own. Undefined where theirs is no such key,
   * or one of which anybody knows what it comes to.
   */
  readonly agree: (theirs: string, transcript: string) => LinkSecret | undefined;
}

export const newSecretHalf = (): SecretHalf => {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    agree: (theirs, transcript) => {
      const shared = sharedWith(privateKey, theirs);
      return shared && secretOf(Buffer.from(hkdfSync('sha256', shared, transcript, PURPOSE, 32)));
    },
  };
};

const sharedWith = (privateKey: KeyObject, theirs: string): Buffer | undefined => {
  try {
    const der = { key: Buffer.from(theirs, 'base64'), format: 'der', type: 'spki' } as const;
    return diffieHellman({ privateKey, publicKey: createPublicKey(der) });
  } catch {
    return undefined;
  }
};

const PURPOSE = 'sandpool link, identities';

const secretOf = (bytes: Buffer): LinkSecret => {
  const key = createSecretKey(bytes);
  const macOf = (text: string): Buffer => createHmac('sha256', key).update(text).digest();
  return {
    sign: (text) => macOf(text).toString('base64url'),
    isSigned: (text, signature) => {
      const given = Buffer.from(signature, 'base64url');
      const mac = macOf(text);
      return given.length === mac.length && timingSafeEqual(given, mac);
    },
  };
};

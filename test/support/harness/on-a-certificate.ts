import { rmSync } from 'node:fs';
import { aCertificate, type Certificate } from '../../../local-cluster/a-certificate.ts';
import { skipBecause } from './skip-because.ts';

/**
 * From the suite's first hook on; skips without openssl. `isTrusted`: this process trusts any
 * certificate until the suite ends.
 */
export const onACertificate = ({ isTrusted = false } = {}): (() => Certificate) => {
  let certificate: Certificate | undefined;
  const trusted = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  before('a certificate', function () {
    certificate = aCertificate() ?? skipBecause(this, 'there is no openssl');
    if (isTrusted) process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  });
  after('the certificate', () => {
    if (trusted === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = trusted;
    if (certificate) rmSync(certificate.folder, { recursive: true });
  });
  return () => {
    if (!certificate) throw new Error('there is a certificate from the first before hook on');
    return certificate;
  };
};

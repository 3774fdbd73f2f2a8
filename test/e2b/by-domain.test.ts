import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { aCertificate, type Certificate } from '../../local-cluster/a-certificate.ts';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { SDKS } from './a-sdk.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const PROGRAM = fileURLToPath(new URL('sdk-by-domain.mts', import.meta.url));

describe('the compatible API by E2B_DOMAIN, over TLS', () => {
  let certificate: Certificate;
  let api: CompatibleApi;
  before(async function () {
    const made = aCertificate({ names: ['*.sandboxes.test'] });
    if (!made) return skipBecause(this, 'there is no openssl to make a certificate with');
    certificate = made;
    api = await aCompatibleApi({ tls: certificate });
  });
  after(async () => {
    await api?.stop();
    if (certificate) rmSync(certificate.folder, { recursive: true });
  });

  for (const version of SDKS.keys())
    it(`serves e2b ${version} by host names only`, async () => {
      const domain = `sandboxes.test:${new URL(api.url).port}`;
      const name = `e2b-${version.replaceAll('.', '-')}`;
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--import', 'tsx', PROGRAM, name],
        {
          timeout: NEVER_COMES_MS,
          env: {
            PATH: process.env['PATH'],
            E2B_DOMAIN: domain,
            E2B_API_KEY: toCompatibleForm(api.keys.tenant),
            NODE_EXTRA_CA_CERTS: certificate.certFile,
          },
        },
      );

      const { id, ...seen } = JSON.parse(stdout) as { readonly id: string };
      expect(seen).to.deep.equal({
        host: `3000-${id}.${domain}`,
        status: 200,
        runs: true,
        read: 'by a link',
        ended: [true, false],
        after: false,
      });
    });
});

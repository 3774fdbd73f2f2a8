import { expect } from 'chai';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import type { HttpAnswer, HttpClient } from '../../support/harness/http-client.ts';
import { aTenantOf } from './belongings.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  Clients,
  type RunningService,
  templateDocument,
} from './running-service.ts';

const DIGEST = `sha256:${'0'.repeat(64)}`;

const BAD_NAMES = {
  '..': '../sandbox',
  'upper case': 'registry.invalid/Sandbox:1',
  'two digests': `sandbox@${DIGEST}@${DIGEST}`,
  '300 characters': 'a'.repeat(300),
} as const;

/** Names that no image can have are refused by their field, wherever an image is named. */
export const imageNamesSuite = (name: string, service: () => RunningService): void => {
  describe(`invalid image names: ${name}`, function () {
    const clients = new Clients(service);
    const [pool, env, template] = [aName('pool'), aName('env'), aName('template')];
    let ask: () => HttpClient;

    before(async () => {
      ({ ask } = await aTenantOf(service(), clients, 'images'));
      const made = await clients.admin.post('/admin/sandbox-templates', {
        crdJson: templateDocument(template, service()),
      });
      expect(made.status, made.text).to.equal(201);
      await aPoolOf(ask, pool, { replicas: 0, template: aTemplateOf(service()) });
      await untilAnswered(201, () =>
        ask().post('/envs', { name: env, templateRef: { name: template } }),
      );
    });
    after(async () => {
      await ask().delete(`/sandboxpools/${pool}?force=true`);
      await ask().delete(`/envs/${env}`);
      await clients.admin.delete(`/admin/sandbox-templates/${template}`);
      clients.close();
    });

    const expectRefused = (answer: HttpAnswer, field: string): void => {
      expect([answer.status, answer.json.errorCode, answer.json.detail], answer.text).to.deep.equal(
        [400, 'INVALID_ARGUMENT', { field }],
      );
    };

    for (const [what, image] of Object.entries(BAD_NAMES)) {
      const overrides = { image };
      const containers = [{ name: 'main', image }];
      const templateRef = { name: template };

      it(`with ${what} are refused in pools`, async () => {
        expectRefused(
          await ask().post('/sandboxpools', { name: aName('pool'), template: { containers } }),
          'template.containers[0].image',
        );
        expectRefused(
          await ask().post('/sandboxpools', {
            name: aName('pool'),
            template: aTemplateOf(service()),
            overrides,
          }),
          'overrides.image',
        );
        expectRefused(
          await ask().post('/sandboxpools', { name: aName('pool'), overrides }),
          'overrides.image',
        );
        expectRefused(await ask().put(`/sandboxpools/${pool}`, { overrides }), 'overrides.image');
      });

      it(`with ${what} are refused in envs, with and without members`, async () => {
        expectRefused(
          await ask().post('/envs', { name: aName('env'), templateRef, overrides }),
          'overrides.image',
        );
        expectRefused(
          await ask().put(`/envs/${env}`, { name: env, templateRef, overrides }),
          'overrides.image',
        );
        expectRefused(
          await ask().send('PATCH', `/envs/${env}`, { body: { overrides } }),
          'overrides.image',
        );
      });

      it(`with ${what} are refused in templates`, async () => {
        const crdJson = (named: string): object => ({
          crdJson: templateDocument(named, service(), { containers }),
        });
        expectRefused(
          await clients.admin.post('/admin/sandbox-templates', crdJson(aName('template'))),
          'crdJson.spec.containers[0].image',
        );
        expectRefused(
          await clients.admin.put(`/admin/sandbox-templates/${template}`, crdJson(template)),
          'crdJson.spec.containers[0].image',
        );
      });
    }
  });
};

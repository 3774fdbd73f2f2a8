import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import {
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
} from '../http/an-approving-server.ts';
import { isForAdmins } from '../../src/cli/commands/approvals.ts';
import { routesOf } from '../../src/http/server/app.ts';
import { eventually } from '../support/harness/eventually.ts';
import { cliHere, type CliEnd } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

describe('sandpool approvals', () => {
  let under: ApprovingServer;
  const sandpool = (...args: readonly string[]): Promise<CliEnd> =>
    cliHere(args, {
      SANDPOOL_SERVER: `http://127.0.0.1:${under.server.port}`,
      SANDPOOL_API_KEY: under.server.tenant.key ?? '',
    });

  beforeEach(async () => {
    under = await anApprovingServer(['require operation=createPool']);
  });
  afterEach(() => under.stop());

  const create = (...more: readonly string[]): Promise<CliEnd> =>
    sandpool('pools', 'create', 'web', '--template', 'default', '--replicas', '1', ...more);

  it('are reported by each command that needs one, with approvers, link and next step', async () => {
    const { code, stderr } = await create();

    const [id = ''] = under.records.records.keys();
    expect(code).to.equal(1);
    expect(stderr)
      .to.include('a person must approve this request first (APPROVAL_REQUIRED)')
      .and.include(`/console/approvals/${id}`)
      .and.include('--wait-approval');
  });

  it('are awaited with --wait-approval, and then the identical request passes', async () => {
    const ended = create('--wait-approval');
    await eventually(() => under.parts.gate.waits.size === 1, 'it waits');
    const [id = ''] = under.records.records.keys();

    await under.approve(id);
    const { code, stderr } = await ended;

    expect(code, stderr).to.equal(0);
    expect(stderr)
      .to.include(`an operator can decide until 2026-01-01T00:15:00.000Z`)
      .and.include(id);
    expect(under.operations.pools.size).to.equal(1);
    expect(under.records.records.get(id)?.status).to.equal('consumed');
  });

  it('are awaited by an upload too, which sends the same bytes again', async () => {
    await under.stop();
    under = await anApprovingServer(['require operation=writeFile']);
    const { tenant } = under.server;
    await tenant.post('/sandboxpools', { name: 'web', templateName: 'default', replicas: 1 });
    const { sandbox } = (await tenant.post('/sandboxes', { poolName: 'web' })).json;
    const file = fileURLToPath(import.meta.url);
    const ended = sandpool('cp', file, `${sandbox?.['sandboxId']}:/tmp/a`, '--wait-approval');
    await eventually(() => under.parts.gate.waits.size === 1, 'it waits');
    const [id = ''] = under.records.records.keys();

    await under.approve(id);
    const { code, stderr } = await ended;

    expect(code, stderr).to.equal(0);
    expect(under.records.records.get(id)?.status).to.equal('consumed');
    expect(under.records.records.size).to.equal(1);
  });

  it('end the wait with the reason if one is denied', async () => {
    const ended = create('--wait-approval');
    await eventually(() => under.parts.gate.waits.size === 1, 'it waits');
    await under.decide([...under.records.records.keys()][0] ?? '', {
      ...{ decision: 'deny', reason: 'not on a\u202e Friday' },
    });

    const { code, stderr } = await ended;

    expect(code).to.equal(1);
    expect(stderr).to.include('APPROVAL_DENIED').and.include('reason: not on a? Friday\n');
  });

  it('denied by a rule refer to the command that names the rule', async () => {
    await under.stop();
    under = await anApprovingServer(['deny operation=createPool']);
    const { stderr } = await create();

    expect(stderr)
      .to.include('sandpool approvals explain')
      .and.not.include('approvals list --status denied');
  });

  it('are listed and shown', async () => {
    const id = approvalIdOf(
      await under.server.tenant.post('/sandboxpools', { name: 'a', templateName: 'default' }),
    );

    expect((await sandpool('approvals', 'list')).stdout)
      .to.match(/^APPROVAL +STATUS +SINCE +USER +REQUEST\n/)
      .and.include(`${id}  pending`);
    expect((await sandpool('approvals', 'list', '--status', 'denied')).stdout).not.to.include(id);
    expect((await sandpool('approvals', 'get', id)).stdout).to.match(
      /^request: +POST \/sandboxpools$/m,
    );
  });

  it('are explained by the rules, however a request is spelled', async () => {
    const explain = async (...args: readonly string[]): Promise<string> =>
      (
        await sandpool(
          'approvals',
          'explain',
          ...args,
          '--approvals-rules',
          'allow role=admin,require operation=deleteApiKeyByName,deny path=/sandboxpools/web key=gated,' +
            'deny operation=deletePool namespace=red,deny path=/sandboxes/s1,deny path=/sandboxes/*/endpoints/web,deny operation=createPool body.replicas>10',
        )
      ).stdout;

    expect(await explain('DELETE', '/v1/admin/api-keys/team-a/k')).to.equal(
      'deleteApiKeyByName by a key of role user: is refused regardless of the rules: only ' +
        'admins may do it (ADMIN_REQUIRED)\n',
    );
    expect(await explain('DELETE', '/admin/api-keys/team-a%2Fk', '--role', 'admin')).to.include(
      'passes, by the rule "allow role=admin"',
    );
    expect(await explain('delete', '/sandboxpools/%77eb', '--gated')).to.include('is denied');
    expect(await explain('DELETE', '/sandboxpools/web?namespace=red')).to.include('only admins');
    expect(await explain('DELETE', '/sandboxes/local.s1')).to.include('is denied');
    expect(await explain('DELETE', '/sandboxpools/web')).to.include('passes; no rule matches');
    expect(await explain('POST', '/sandboxpools', '--body', '{"replicas":11}')).to.include(
      'denied',
    );
    expect(await explain('POST', '/sandboxpools')).to.include('passes; no rule matches');
    expect(await explain('POST', '/v1/sandboxes/local.s1/endpoints/web/login')).to.equal(
      'openEndpoint by a key of role user: is denied, by the rule "deny ' +
        'path=/sandboxes/*/endpoints/web"\n',
    );
    expect(await explain('DELETE', '/sandboxpools/web', '--key', 'none')).to.equal('');
  });

  it('are explained by caller: operations of admins, keys for others, and requests without a rule', async () => {
    const explain = async (role: string, method: string, path: string): Promise<string> =>
      (
        await sandpool(
          ...line`approvals explain ${method} ${path} --role ${role} --approvals-rules`,
          'require operation=createApiKeyForTenant,deny operation=createApiKey role=user,deny namespace=red',
        )
      ).stdout;

    expect(await explain('admin', 'POST', '/api-keys')).to.equal(
      'createApiKey by a key of role admin: passes; no rule matches\n' +
        'createApiKeyForTenant, which it is with team, user or role in its body: waits for ' +
        'approval, by the rule "require operation=createApiKeyForTenant"\n',
    );
    expect(await explain('user', 'POST', '/api-keys'))
      .to.include('is denied, by the rule "deny operation=createApiKey role=user"')
      .and.match(/createApiKeyForTenant, .*is refused regardless of the rules/);
    const other = '/sandboxpools/web?namespace=red';
    expect(await explain('user', 'DELETE', other)).to.include('is refused regardless of the rules');
    expect(await explain('admin', 'DELETE', other)).to.include('is denied');
    expect(await explain('admin', 'POST', '/approvals/x/decision')).to.include(
      'rules do not apply to it',
    );
  });

  it('show from the path which operations are for admins', () => {
    for (const { path, access, operationId } of routesOf(under.operations))
      if (access !== 'open') expect(isForAdmins(path), operationId).to.equal(access === 'admin');
  });
});

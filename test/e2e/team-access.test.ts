import { expect } from 'chai';
import { within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { aTenant, claim, clear, stocked } from '../support/harness/on-a-daemon.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

type Names = { readonly items: readonly { readonly name: string }[]; readonly total: number };

describe('a pool for a team', () => {
  const onDaemon = onTheSharedDaemon();
  let teacher: HttpClient;
  let student: HttpClient;
  let stranger: HttpClient;

  before(async function () {
    const daemon = onDaemon();
    teacher = await aTenant(daemon, 'school', 'teacher');
    student = await aTenant(daemon, 'school', 'student');
    stranger = await aTenant(daemon, 'other', 'student');
    const shared = { name: 'class', templateName: 'default', replicas: 3, access: 'team' };
    expect((await teacher.post('/sandboxpools', shared)).status).to.equal(201);
    await teacher.post('/sandboxpools', { name: 'own', templateName: 'default', replicas: 0 });
    await stocked(teacher, 3, 'class');
  });

  afterEach(async () => {
    await clear(student);
    await clear(teacher);
    await stocked(teacher, 3, 'class');
  });

  const poolsOf = async (client: HttpClient): Promise<readonly string[]> =>
    (JSON.parse((await client.get('/sandboxpools')).text) as Names).items.map(({ name }) => name);

  it('gives every user of the team their own sandboxes', async () => {
    const id = await claim(student, 'class');
    const { json } = await student.get(`/sandboxes/${id}`);
    expect(json.sandbox?.['user']).to.equal('student');
    expect((await teacher.get(`/sandboxes/${id}`)).status).to.equal(404);
    const page = JSON.parse((await teacher.get('/sandboxes')).text) as Names;
    expect(page.total).to.equal(0);
  });

  it('shows the team the shared resources, and nothing else', async () => {
    expect(await poolsOf(student)).to.deep.equal(['class']);
    expect([...(await poolsOf(teacher))].sort()).to.deep.equal(['class', 'own']);
    expect((await student.get('/sandboxpools/own')).status).to.equal(404);
    expect((await student.post('/sandboxes', { poolName: 'own' })).json.errorCode).to.equal(
      'POOL_NOT_OWNED',
    );
  });

  it('shows another team nothing', async () => {
    expect(await poolsOf(stranger)).to.deep.equal([]);
    expect((await stranger.get('/sandboxpools/class')).status).to.equal(404);
    expect((await stranger.post('/sandboxes', { poolName: 'class' })).json.errorCode).to.equal(
      'POOL_NOT_OWNED',
    );
  });

  it('can be changed by its owner only', async () => {
    const change = { labels: { a: 'b' } };
    for (const refused of [
      await student.put('/sandboxpools/class', change),
      await student.delete('/sandboxpools/class'),
    ]) {
      expect([refused.status, refused.json.errorCode]).to.deep.equal([403, 'FORBIDDEN']);
      expect(refused.text).to.contain('only its owner and admins can change it');
    }
    expect((await teacher.put('/sandboxpools/class', change)).json.template?.['spec']).to.include({
      access: 'team',
    });
  });

  it('becomes private on request, and keeps claimed sandboxes', async () => {
    const id = await claim(student, 'class');
    expect(
      (await teacher.put('/sandboxpools/class', { access: 'user' })).json.template?.['spec'],
    ).not.to.have.property('access');
    expect(await poolsOf(student)).to.deep.equal([]);
    expect((await student.post('/sandboxes', { poolName: 'class' })).json.errorCode).to.equal(
      'POOL_NOT_OWNED',
    );
    expect((await student.get(`/sandboxes/${id}`)).status).to.equal(200);
    await teacher.put('/sandboxpools/class', { access: 'team' });
    expect(await poolsOf(student)).to.deep.equal(['class']);
  });

  it('can be a member of a shared env', async () => {
    const env = { name: 'course', templateRef: { name: 'default' }, access: 'team' };
    expect((await teacher.post('/envs', env)).status).to.equal(201);
    expect(
      (await teacher.post('/envs/course/sandboxpools', { name: 'seat', replicas: 1 })).status,
    ).to.equal(201);
    await stocked(student, 1, 'seat');
    await claim(student, 'seat');
    const page = JSON.parse((await student.get('/envs')).text) as Names;
    expect(page.items.map(({ name }) => name)).to.deep.equal(['course']);
    expect(
      (await student.put('/envs/course', { templateRef: { name: 'default' } })).json.errorCode,
    ).to.equal('FORBIDDEN');
    await teacher.put('/envs/course', { templateRef: { name: 'default' } });
    await within(
      'the member is not shared any more',
      async () => (await student.get('/sandboxpools/seat')).status === 404 || undefined,
    );
    expect((await student.get('/envs/course')).status).to.equal(404);
    expect((await teacher.delete('/envs/course?force=true')).status).to.equal(200);
  });
});

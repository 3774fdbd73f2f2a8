import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { SDKS } from './a-sdk.ts';
import { CONTROL_STEPS, controlWorld } from './control-steps.ts';

for (const [version, Sandbox] of SDKS)
  describe(`the control API with e2b ${version}`, () => {
    let api: CompatibleApi;
    before(async () => {
      api = await aCompatibleApi();
    });
    after(() => api.stop());

    for (const [title, step] of Object.entries(CONTROL_STEPS))
      it(title, () => step(controlWorld(api, { version, Sandbox })));
  });

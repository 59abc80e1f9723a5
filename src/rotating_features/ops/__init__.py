"""Element-wise maths of a rotating layer: one public function a file."""
